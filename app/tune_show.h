// SPDX-License-Identifier: Apache-2.0
// What tune, optimize --benchmark and demo share: a request out of arguments, and the search with
// its lines on stderr.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "process/tune.h"

namespace saturate {

class Arguments;
// Settings, limits and facts out of a command line of tune or optimize; the folder is still empty.
[[nodiscard]] TuneRequest tune_request(const Arguments& arguments);

// The same for a configuration and a device ("auto", "cpu", "cuda:0", "sim:RTX 4090").
[[nodiscard]] TuneRequest tune_request(const std::string& config, const std::string& device,
                                       Level level);

// Data of a reference job that is to lie where `data make` writes it, and does not yet: made, and
// said on stderr. A path of the user's own is left to be found missing.
void make_missing_data(const std::string& config, bool quiet);

// Makes folder and data, and searches; `serve`: the address of a live page, if one is wanted.
[[nodiscard]] TuneAnswer tune_and_show(const TuneRequest& request, bool quiet,
                                       const std::optional<std::string>& serve = std::nullopt);

}  // namespace saturate
