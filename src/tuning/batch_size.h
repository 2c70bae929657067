// SPDX-License-Identifier: Apache-2.0
// The batch size: small probes fit memory and time, the answer is the knee of the throughput below
// the memory bound, and it is measured before it is given. Never a size that was not run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "remedies/learning_rate.h"
#include "tuning/fit.h"
#include "tuning/trial.h"

namespace saturate {

struct BatchLimits {
    std::int64_t min = 1;
    std::int64_t max = 1 << 20;
    std::int64_t step = 8;                      // sizes are multiples of it
    double memory_share = 0.9;                  // of the device's memory
    double knee_share = 0.02;                   // smallest size within this of the best throughput
    std::optional<double> target_busy_percent;  // smallest size that keeps the device so busy
    std::optional<std::int64_t> effective_batch;  // kept, by accumulation
    int probes_max = 9;
    bool climb_only = false;  // smaller sizes were probed before
};

struct BatchProbe {
    std::int64_t size = 0;
    TrialOutcome outcome = TrialOutcome::ok;
    std::optional<Rate> rate;
    std::optional<std::uint64_t> memory_bytes;
    std::optional<double> busy_percent;
    double seconds = 0;
};

struct BatchAnswer {
    std::vector<BatchProbe> probes;  // in the order in which they ran
    std::optional<StraightLine> memory, time;
    std::optional<std::int64_t> memory_bound;  // largest size below the share of memory, by the fit
    std::optional<std::int64_t> failed_at;     // smallest size that ran out of memory
    std::int64_t size = 0;                     // 0: no probe ran well
    std::int64_t accumulation = 1;
    std::string why;
};

// `start` is the user's own size; one probe goes down from it, or two where memory is scarce.
// `base` are the settings that every probe has.
[[nodiscard]] BatchAnswer find_batch_size(std::int64_t start, const BatchLimits& limits,
                                          const Assignment& base, const RunTrial& run);

[[nodiscard]] Json to_json(const BatchAnswer& answer);

}  // namespace saturate
