// SPDX-License-Identifier: Apache-2.0
// One-offs: work that happens once and that a longer run does not repeat, such as loading kernels,
// starting libraries, compiling and recording CUDA graphs. Called once per trace by
// timeline_steady.cpp.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnosis/idle_times.h"
#include "diagnosis/timeline.h"

namespace saturate {

struct OneOff {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    Cause cause = Cause::startup;  // startup or recording
    std::string_view kind;         // "loading kernels"
    std::int32_t event = -1;       // Trace::events
};

// Returns the one-offs by start. They may overlap, and the GPU may work during parts of them.
[[nodiscard]] std::vector<OneOff> find_one_offs(const Timeline& line, const IdleTimes& idle);

// Returns only the one-offs before the loop of the script starts: one_off_before.cpp.
[[nodiscard]] std::vector<OneOff> find_before_work(const Timeline& line, const IdleTimes& idle);

// True for a range of a compiled model, whether it runs or its CUDA graph is being recorded.
[[nodiscard]] bool is_compiled_region(std::string_view name);

}  // namespace saturate
