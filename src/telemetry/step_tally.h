// SPDX-License-Identifier: Apache-2.0
// What the steps of a run come to, one after another in bounded memory: rates and step times with
// their spread, shares of waiting. The first steps compile, fill caches and start workers: they are
// left out where there are enough.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "telemetry/record.h"

namespace saturate {

// Positive values of any size to 1 %.
class LogHistogram {
  public:
    void add(double value);
    [[nodiscard]] std::optional<double> quantile(double share) const;
    [[nodiscard]] std::int64_t n() const { return n_; }

  private:
    static constexpr int kBins = 4096;  // 1 % each, from 0.001 to 5e14: a week in ns
    std::array<std::uint32_t, kBins> counts_{};
    std::int64_t n_ = 0;
};

class StepTally {
  public:
    void add(const StepRecord& step);
    // Steps that a profiler slowed down are counted, but not timed.
    void set_disturbed(bool is_disturbed) { is_disturbed_ = is_disturbed; }

    [[nodiscard]] std::int64_t steps() const { return steps_; }
    [[nodiscard]] std::optional<double> step_ms() const;  // median
    void fill(RunSummary& summary) const;

  private:
    LogHistogram durations_, rates_;
    std::int64_t steps_ = 0, samples_ = 0;
    double timed_ns_ = 0, wait_ns_ = 0, read_ns_ = 0;
    bool knows_wait_ = false, knows_read_ = false, is_disturbed_ = false;
    std::array<StepRecord, 5> first_{};
    void time(const StepRecord& step);
};

}  // namespace saturate
