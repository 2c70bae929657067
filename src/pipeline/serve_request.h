// SPDX-License-Identifier: Apache-2.0
// What Python asks its loader process for, and what that opens: the source and the settings of the
// loader. The request is JSON with long lists (weights, paths) beside it as bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "pipeline/loader.h"

namespace saturate {

struct ServedData {
    std::shared_ptr<const SampleSource> source;
    LoaderSettings loader;
    std::vector<std::string> classes = {};  // by label, of images in classes
    bool tells_samples = false;             // each batch also says which samples it holds
    std::size_t told_at_once = 1;           // batches, where they come fast
};

// `blobs`: as "blobs" of the request names them, one after the other. Throws UserError and
// MachineError as the sources do.
[[nodiscard]] ServedData open_request(const Json& request, std::string_view blobs);

}  // namespace saturate
