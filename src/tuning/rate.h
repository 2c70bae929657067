// SPDX-License-Identifier: Apache-2.0
// The figures that a search needs from the account of a run (telemetry/account.h): the rate, its
// variation, and where the time went.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "telemetry/account.h"

namespace saturate {

struct Rate {
    double per_second = 0;  // total samples over total time, steady part
    // Smallest and largest rate of overlapping windows, each half of the steady steps long. A trial
    // is too short for windows of seconds.
    double low = 0;
    double high = 0;
    int n = 0;                    // number of windows
    std::int64_t steps = 0;       // steady steps
    std::int64_t dropped = 0;     // warm-up steps left out
    double step_seconds = 0;      // mean over all steady steps
    double input_wait_share = 0;  // share of the steady time
    double copy_share = 0;        // likewise: the host copies to the device
    double log_share = 0;         // likewise: the host reads and logs the loss
    std::optional<double> device_busy_share;
    double trend = 0;  // growth of the step time over the steady part: 0.2 is a fifth slower

    // Half the distance between low and high, as a share of the rate.
    [[nodiscard]] double spread() const {
        return per_second > 0 ? (high - low) / (2 * per_second) : 0;
    }
};

// Returns nothing for fewer than four steady steps (two, if each takes half a second or more), or
// if the sample counts are missing.
[[nodiscard]] std::optional<Rate> rate_of(const Account& account);
[[nodiscard]] std::optional<Rate> rate_of(std::span<const StepRecord> steps);

// True if six windows agree within 3 %: no more measuring is needed.
[[nodiscard]] bool is_known_well(const Rate& rate);

// True if there are four windows or more and all of them stay below `least` samples/s.
[[nodiscard]] bool is_hopeless(const Rate& rate, double least);

}  // namespace saturate
