// SPDX-License-Identifier: Apache-2.0
// What the steps of a run add up to, for the progress line and the summary. Bounded memory.
// Training thread.
#pragma once

#include <vector>

#include "telemetry/record.h"

namespace saturate {

// A bounded, evenly thinned sample of a stream of numbers.
class Thinned {
  public:
    void add(float value);
    [[nodiscard]] std::optional<Spread> spread() const;  // 5 %, median, 95 %
    [[nodiscard]] std::optional<double> quantile(double share) const;

  private:
    static constexpr std::size_t kMost = 1 << 15;
    std::vector<float> values_;
    std::int64_t n_ = 0, stride_ = 1;
};

// Sums over some steps.
struct StepSums {
    std::int64_t steps = 0, samples = 0;
    std::int64_t duration_ns = 0, input_wait_ns = 0, copy_ns = 0, busy_ns = 0, log_ns = 0,
                 communication_ns = 0;

    [[nodiscard]] double samples_per_second() const;
    [[nodiscard]] double share(std::int64_t part_ns) const;  // of the duration, in percent
};

class StepTotals {
  public:
    void add(const StepRecord& record);
    // Of the steps since the last call, which an interval of the log is.
    StepSums take_interval();
    void fill(RunSummary& summary) const;
    [[nodiscard]] double share_of_all(std::int64_t part_ns) const { return all_.share(part_ns); }

  private:
    StepSums all_, interval_;
    Thinned durations_ms_, rates_;
    std::vector<double> busy_;  // per interval, in percent
};

}  // namespace saturate
