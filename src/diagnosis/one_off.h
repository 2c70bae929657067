// SPDX-License-Identifier: Apache-2.0
// What a longer run does not pay again: loading kernels, starting libraries, compiling, recording
// CUDA graphs. Found once per trace, by timeline_steady.cpp.
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
    Cause cause = Cause::startup;  // or recording
    std::string_view kind;         // "loading kernels"
    std::int32_t event = -1;       // Trace::events
};

// By start; they may overlap, and the GPU may work during parts of them.
[[nodiscard]] std::vector<OneOff> find_one_offs(const Timeline& line, const IdleTimes& idle);

// Of these, what a script does before its loop runs: one_off_before.cpp.
[[nodiscard]] std::vector<OneOff> find_before_work(const Timeline& line, const IdleTimes& idle);

// The code of a compiled model, at work or while its graph is recorded.
[[nodiscard]] bool is_compiled_region(std::string_view name);

}  // namespace saturate
