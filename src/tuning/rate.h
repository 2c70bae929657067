// SPDX-License-Identifier: Apache-2.0
// What a search asks of the account of a run (telemetry/account.h): its rate, how far that varied,
// and where the time went.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "telemetry/account.h"

namespace saturate {

struct Rate {
    double per_second = 0;  // samples over time, in the steady part
    // Least and most of windows that are each half of the steady steps, one a little later than the
    // other: a trial is too short for windows of seconds.
    double low = 0;
    double high = 0;
    int n = 0;                    // windows
    std::int64_t steps = 0;       // steady steps
    std::int64_t dropped = 0;     // steps of the warm-up
    double step_seconds = 0;      // mean: what the steps took, over their number
    double input_wait_share = 0;  // of the steady time
    double copy_share = 0;        // likewise: the host copying to the device
    double log_share = 0;         // likewise: reading and logging the loss
    std::optional<double> device_busy_share;
    double trend = 0;  // growth of the step time over the steady part: 0.2 is a fifth slower

    // Half the distance between low and high, as a share of the rate.
    [[nodiscard]] double spread() const {
        return per_second > 0 ? (high - low) / (2 * per_second) : 0;
    }
};

// Nothing with fewer than four steady steps (two, where each takes half a second or more) or
// without sample counts.
[[nodiscard]] std::optional<Rate> rate_of(const Account& account);
[[nodiscard]] std::optional<Rate> rate_of(std::span<const StepRecord> steps);

// Enough is known: six windows that agree within 3 %.
[[nodiscard]] bool is_known_well(const Rate& rate);

// Four windows or more, and not one of them comes up to `least` samples/s.
[[nodiscard]] bool is_hopeless(const Rate& rate, double least);

}  // namespace saturate
