// SPDX-License-Identifier: Apache-2.0
// Opens what Python requests from its loader process: the source and the settings of the loader.
// The request is JSON; long lists (weights, paths) come as bytes next to it.
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
    std::vector<std::string> classes = {};  // for images in classes, by label
    bool tells_samples = false;             // announce each batch with its samples' indices
    std::size_t told_at_once = 1;           // batches announced together if they come fast
};

// `blobs`: the byte lists that the request names under "blobs", one after the other. Throws
// UserError and MachineError as the sources do.
[[nodiscard]] ServedData open_request(const Json& request, std::string_view blobs);

}  // namespace saturate
