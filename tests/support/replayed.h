// SPDX-License-Identifier: Apache-2.0
// Runs a program on the stand-in driver (support/nvml_replay) with one of its scenarios.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "support/run.h"

namespace saturate {

struct Replayed {
    std::string scenario;
    std::string clock = "step:0.1";  // "real:0" stands still
    std::string variant = "new";     // "old": without the newer symbols
};

// The environment in which a program loads the stand-in.
[[nodiscard]] std::map<std::string, std::string> replay_environment(
    const Replayed& replayed, const std::string& replay_folder);

// How often each of NVML's functions was called, from SATURATE_NVML_CALLS; "!name" broke the rules.
[[nodiscard]] std::map<std::string, std::uint64_t> replay_calls(const std::filesystem::path& file);

// The JSON lines that a program printed.
[[nodiscard]] std::vector<Json> json_lines(const std::string& text);

}  // namespace saturate
