// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/idle_times.h"

#include <algorithm>

namespace saturate {

IdleTimes::IdleTimes(const Timeline& line) {
    std::int64_t covered = line.start_ns, sum = 0;
    auto gap = [&](std::int64_t until) {
        if (until <= covered) return;
        spans_.push_back({covered, until});
        before_.push_back(sum);
        sum += until - covered;
    };
    for (std::uint32_t index : line.gpu) {
        const Event& one = line.trace->events[index];
        gap(std::min(one.start_ns, line.end_ns));
        covered = std::max(covered, one.end_ns());
    }
    gap(line.end_ns);
}

std::int64_t IdleTimes::within(std::int64_t from, std::int64_t to) const {
    // Returns the idle time before `time`.
    auto until = [&](std::int64_t time) {
        auto after = std::ranges::upper_bound(spans_, time, {}, &IdleSpan::start_ns);
        if (after == spans_.begin()) return std::int64_t{0};
        auto index = static_cast<std::size_t>(after - spans_.begin()) - 1;
        return before_[index] + std::min(time, spans_[index].end_ns) - spans_[index].start_ns;
    };
    return to > from ? until(to) - until(from) : 0;
}

}  // namespace saturate
