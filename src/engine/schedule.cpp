// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace saturate {

double Schedule::at(std::int64_t step) const {
    if (step < warmup_steps)  // above zero from the first step on
        return highest * static_cast<double>(step + 1) / static_cast<double>(warmup_steps + 1);
    switch (kind) {
        case ScheduleKind::constant:
            break;
        case ScheduleKind::cosine: {
            double span =
                static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup_steps));
            double share = std::min(1.0, static_cast<double>(step - warmup_steps) / span);
            return least + (highest - least) * 0.5 * (1 + std::cos(std::numbers::pi * share));
        }
        case ScheduleKind::step: {
            std::int64_t drops = step / std::max<std::int64_t>(1, steps_per_drop);
            return std::max(least, highest * std::pow(drop_factor, static_cast<double>(drops)));
        }
    }
    return highest;
}

}  // namespace saturate
