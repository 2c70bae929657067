// SPDX-License-Identifier: Apache-2.0
// Finds the batch size. Small probes give straight lines for memory and step time. The answer is
// the knee of the throughput below the memory bound. It is always a size that was measured. Called
// by tuning/search, single-threaded.
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
    std::int64_t step = 8;                      // sizes are multiples of this
    double memory_share = 0.9;                  // of the device's memory
    double knee_share = 0.02;                   // smallest size within this of the best throughput
    std::optional<double> target_busy_percent;  // the smallest size that keeps the device this busy
    // The effective batch that gradient accumulation has to keep.
    std::optional<std::int64_t> effective_batch;
    int probes_max = 9;
    bool climb_only = false;  // the smaller sizes were probed before
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
    std::vector<BatchProbe> probes;  // in the order of the runs
    std::optional<StraightLine> memory, time;
    std::optional<std::int64_t> memory_bound;  // largest size within memory_share, by the fit
    std::optional<std::int64_t> failed_at;     // smallest size that ran out of memory
    std::int64_t size = 0;                     // 0: no probe ran well
    std::int64_t accumulation = 1;
    std::string why;
};

// `start` is the user's own size. Probes half of it too, and a quarter unless memory has room for
// four times the size. Every probe runs with the settings in `base`.
[[nodiscard]] BatchAnswer find_batch_size(std::int64_t start, const BatchLimits& limits,
                                          const Assignment& base, const RunTrial& run);

[[nodiscard]] Json to_json(const BatchAnswer& answer);

}  // namespace saturate
