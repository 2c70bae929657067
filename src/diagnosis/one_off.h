// SPDX-License-Identifier: Apache-2.0
// What a longer run does not pay again: loading kernels, starting libraries, compiling, recording
// CUDA graphs. Found once per trace, by timeline_steady.cpp.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnosis/timeline.h"

namespace saturate {

struct IdleSpan {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    [[nodiscard]] std::int64_t length_ns() const { return end_ns - start_ns; }
};

// When the GPU did nothing, by start, without overlap.
class IdleTimes {
  public:
    explicit IdleTimes(const Timeline& line);  // in its window
    [[nodiscard]] const std::vector<IdleSpan>& spans() const { return spans_; }
    [[nodiscard]] std::int64_t within(std::int64_t from, std::int64_t to) const;
    [[nodiscard]] bool is_mostly_idle(std::int64_t from, std::int64_t to) const {
        return 2 * within(from, to) >= to - from;
    }

  private:
    std::vector<IdleSpan> spans_;
    std::vector<std::int64_t> before_;  // idle time before each span
};

struct OneOff {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    Cause cause = Cause::startup;  // or recording
    std::string_view kind;         // "loading kernels"
    std::int32_t event = -1;       // Trace::events
};

// By start; they may overlap, and the GPU may work during parts of them.
[[nodiscard]] std::vector<OneOff> find_one_offs(const Timeline& line, const IdleTimes& idle);

// The code of a compiled model, at work or while its graph is recorded.
[[nodiscard]] bool is_compiled_region(std::string_view name);

}  // namespace saturate
