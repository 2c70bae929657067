// SPDX-License-Identifier: Apache-2.0
// The steady rate of a run: warm-up (compiling, first pages, starting workers; filling a queue,
// which is fast) is found as a change in the step times, not as a fixed count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "telemetry/record.h"

namespace saturate {

struct Rate {
    double median = 0;  // of windows, each half of the steps and a little later than the last ...
    double low = 0;     // ... the least and the most of them
    double high = 0;
    int n = 0;                    // windows
    std::int64_t steps = 0;       // steady steps
    std::int64_t dropped = 0;     // steps of the warm-up
    double step_seconds = 0;      // median
    double input_wait_share = 0;  // of the steady time
    double copy_share = 0;        // likewise: the host copying to the device
    double log_share = 0;         // likewise: reading and logging the loss
    std::optional<double> device_busy_share;
    double trend = 0;  // growth of the step time over the steady part: 0.2 is a fifth slower

    // Half the distance between low and high, as a share of the median.
    [[nodiscard]] double spread() const { return median > 0 ? (high - low) / (2 * median) : 0; }
};

// Where the steady part begins: the split of the times into a start and the rest that explains them
// best, taken only where it explains much.
[[nodiscard]] std::size_t steady_from(std::span<const double> seconds);

// Nothing with fewer than four steady steps (two, where each takes half a second or more) or
// without sample counts.
[[nodiscard]] std::optional<Rate> steady_rate(std::span<const StepRecord> steps);

// Enough is known: six windows that agree within 3 %.
[[nodiscard]] bool is_known_well(const Rate& rate);

// Four windows or more, and not one of them comes up to `least` samples/s.
[[nodiscard]] bool is_hopeless(const Rate& rate, double least);

}  // namespace saturate
