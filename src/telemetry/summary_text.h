// SPDX-License-Identifier: Apache-2.0
// The summary, the verdict and the lines of a tick as text. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "telemetry/summary.h"

namespace saturate {

// Returns one line per GPU with power/limit, utilisation, memory, temperature and clocks, or lines
// for the host if there is no GPU.
[[nodiscard]] std::vector<std::string> tick_lines(const Snapshot& snapshot);

// What the user can do next with the result.
struct NextSteps {
    std::string run_folder;  // -o, if monitor wrote a run record
};

[[nodiscard]] std::string summary_text(const Summary& summary, const NextSteps& steps);
// Returns only the verdict: one sentence on the level and one per reason.
[[nodiscard]] std::vector<std::string> verdict_lines(const Summary& summary);
[[nodiscard]] std::vector<std::string> next_lines(const Summary& summary, const NextSteps& steps);

}  // namespace saturate
