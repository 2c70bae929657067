// SPDX-License-Identifier: Apache-2.0
// The summary, the verdict and the line of a tick in words. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "telemetry/summary.h"

namespace saturate {

// One line per GPU: power/limit, utilisation, memory, temperature, clocks; without GPUs the host's.
[[nodiscard]] std::vector<std::string> tick_lines(const Snapshot& snapshot);

// What a user may do with the result: monitor may have written a run record.
struct NextSteps {
    std::string run_folder;  // -o
};

[[nodiscard]] std::string summary_text(const Summary& summary, const NextSteps& steps);
// The verdict alone: one sentence on the level, one per reason.
[[nodiscard]] std::vector<std::string> verdict_lines(const Summary& summary);
[[nodiscard]] std::vector<std::string> next_lines(const Summary& summary, const NextSteps& steps);

}  // namespace saturate
