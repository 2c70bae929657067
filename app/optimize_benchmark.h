// SPDX-License-Identifier: Apache-2.0
// What `optimize --benchmark` adds: of the search's answer the proven values become changes of the
// file, everything else is shown.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "remedies/advise.h"
#include "tuning/proven.h"

namespace saturate {

// Found or estimated, and not written.
struct LeftOut {
    std::string key, before, after;
    std::string why;
};

struct Benchmarked {
    Advice advice;  // what is written
    std::vector<LeftOut> rest;
    std::string why;  // why nothing of the search is proven; empty: it is, or nothing was found
};

// `estimate` is what would be advised without measuring. `with_unproven`: the user asked for all.
[[nodiscard]] Benchmarked benchmarked(const Document& document, const Settings& settings,
                                      Advice estimate, const TuneRequest& request,
                                      const TuneAnswer& answer, bool with_unproven);

[[nodiscard]] std::string measured_text(const TuneAnswer& answer, const Benchmarked& proven,
                                        const std::filesystem::path& folder);
[[nodiscard]] Json unproven_json(const Benchmarked& proven);

}  // namespace saturate
