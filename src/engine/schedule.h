// SPDX-License-Identifier: Apache-2.0
// The learning rate of each step: a linear warm-up, then constant, a cosine down to `least`, or
// drops. A pure function of the step.
#pragma once

#include <cstdint>

namespace saturate {

enum class ScheduleKind { constant, cosine, step };

struct Schedule {
    ScheduleKind kind = ScheduleKind::constant;
    double highest = 1e-3;
    double least = 0;
    std::int64_t warmup_steps = 0;
    std::int64_t total_steps = 0;     // of the whole run; where the cosine ends
    std::int64_t steps_per_drop = 0;  // for ScheduleKind::step
    double drop_factor = 0.1;

    [[nodiscard]] double at(std::int64_t step) const;
};

}  // namespace saturate
