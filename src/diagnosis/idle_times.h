// SPDX-License-Identifier: Apache-2.0
// The idle times of the GPU. Made from the window of a timeline before causes are assigned to its
// gaps.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/timeline.h"

namespace saturate {

inline constexpr std::int64_t kMs = 1'000'000;  // nanoseconds

struct IdleSpan {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    [[nodiscard]] std::int64_t length_ns() const { return end_ns - start_ns; }
};

// The idle spans of the GPU in the window, by start, without overlap.
class IdleTimes {
  public:
    explicit IdleTimes(const Timeline& line);
    [[nodiscard]] const std::vector<IdleSpan>& spans() const { return spans_; }
    [[nodiscard]] std::int64_t within(std::int64_t from, std::int64_t to) const;
    [[nodiscard]] bool is_mostly_idle(std::int64_t from, std::int64_t to) const {
        return 2 * within(from, to) >= to - from;
    }

  private:
    std::vector<IdleSpan> spans_;
    std::vector<std::int64_t> before_;  // idle time before each span
};

}  // namespace saturate
