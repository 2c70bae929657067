// SPDX-License-Identifier: Apache-2.0
// The part of `optimize` for --benchmark: the proven values of a search become changes of the file;
// everything else is only shown.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "remedies/advise.h"
#include "tuning/proven.h"

namespace saturate {

// A value that was found or estimated but is not written.
struct LeftOut {
    std::string key, before, after;
    std::string why;
};

struct Benchmarked {
    Advice advice;  // the changes to write
    std::vector<LeftOut> rest;
    std::string why;  // why the search result is not proven; empty if it is or nothing was found
};

// `estimate` is the advice without measuring. `with_unproven`: the user wants unproven values too.
[[nodiscard]] Benchmarked benchmarked(const Document& document, const Settings& settings,
                                      Advice estimate, const TuneRequest& request,
                                      const TuneAnswer& answer, bool with_unproven);

[[nodiscard]] std::string measured_text(const TuneAnswer& answer, const Benchmarked& proven,
                                        const std::filesystem::path& folder);
[[nodiscard]] Json unproven_json(const Benchmarked& proven);

}  // namespace saturate
