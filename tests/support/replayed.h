// SPDX-License-Identifier: Apache-2.0
// Runs a program on the fake NVML driver (support/nvml_replay) with one of its scenarios.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "support/run.h"

namespace saturate {

struct Replayed {
    std::string scenario;
    std::string clock = "step:0.1";  // "real:0": time stands still
    std::string variant = "new";     // "old": without the newer symbols
};

// Returns the environment in which a program loads the fake driver.
[[nodiscard]] std::map<std::string, std::string> replay_environment(
    const Replayed& replayed, const std::string& replay_folder);

// Returns the number of calls of each NVML function, from the file of SATURATE_NVML_CALLS; "!name"
// counts the calls that broke the rules.
[[nodiscard]] std::map<std::string, std::uint64_t> replay_calls(const std::filesystem::path& file);

// Parses the JSON lines that a program printed.
[[nodiscard]] std::vector<Json> json_lines(const std::string& text);

}  // namespace saturate
