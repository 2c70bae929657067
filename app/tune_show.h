// SPDX-License-Identifier: Apache-2.0
// Shared by tune, optimize --benchmark and demo: makes a search request from arguments, and runs
// the search with progress on stderr.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "process/tune.h"

namespace saturate {

class Arguments;
// Reads settings, limits and facts from the command line of tune or optimize; leaves out `folder`.
[[nodiscard]] TuneRequest tune_request(const Arguments& arguments);

// The same for a configuration and a device ("auto", "cpu", "cuda:0", "sim:RTX 4090").
[[nodiscard]] TuneRequest tune_request(const std::string& config, const std::string& device,
                                       Level level);

// Makes the data of a reference job if it is missing and the configuration uses the path of
// `data make`; reports it on stderr. Leaves a user's own path alone, which fails later if missing.
void make_missing_data(const std::string& config, bool quiet);

// Makes the folder and the data, and searches. `serve` is the address of a live page, if wanted.
[[nodiscard]] TuneAnswer tune_and_show(const TuneRequest& request, bool quiet,
                                       const std::optional<std::string>& serve = std::nullopt);

}  // namespace saturate
