// SPDX-License-Identifier: Apache-2.0
// Sums up the readings of one GPU in bounded memory: means, fluctuation, peaks, energy and
// throttling. Used while watching (Summarizer) and when reading a record. Used from one thread.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "telemetry/sample.h"
#include "telemetry/statistics.h"
#include "telemetry/summary.h"

namespace saturate {

class GpuTally {
  public:
    explicit GpuTally(GpuIdentity gpu) : gpu_(std::move(gpu)) {}

    void add(const DeviceSample& sample, double interval_seconds);
    [[nodiscard]] GpuSummary summary() const;

  private:
    static constexpr std::size_t kThrottleKinds = 5;
    // First and last value of a counter.
    struct Counter {
        std::optional<double> first, last;
        void add(std::optional<double> value) {
            if (!value) return;
            if (!first) first = value;
            last = value;
        }
        [[nodiscard]] std::optional<double> rise() const {
            if (!first || *last < *first) return std::nullopt;
            return *last - *first;
        }
    };

    void take_utilisation(const DeviceSample& sample, double seconds);
    void use_pending(double until_ns);
    [[nodiscard]] std::optional<double> activity_by_power() const;
    void sum_throttle(GpuSummary& out) const;

    struct Waiting {
        std::int64_t time_ns;
        double percent;
        double seconds;
    };

    GpuIdentity gpu_;
    std::optional<std::string> fault_;
    std::int64_t ticks_ = 0;
    std::optional<std::int64_t> last_ns_;
    double seconds_ = 0;
    // Readings that wait until it is known whether the driver's own samples cover their time.
    std::vector<Waiting> waiting_;
    Running utilisation_;
    PercentHistogram histogram_;
    bool any_ring_ = false;
    Running memory_, power_, idle_power_, busy_power_, temperature_, memory_temperature_, clock_,
        sm_, tensor_, dram_;
    std::optional<double> memory_total_, power_limit_, clock_max_;
    Counter energy_, pcie_tx_, pcie_rx_;
    double power_joules_ = 0;
    double joules_since_counter_ = 0;  // from power, since the last counter reading
    std::array<Counter, kThrottleKinds> throttle_counters_;
    std::array<double, kThrottleKinds> throttle_seen_seconds_{};
    std::optional<std::uint64_t> reasons_;
    bool any_reasons_ = false;
};

// How busy several GPUs were: the mean of all, and the largest fluctuation of one.
struct BusyShare {
    std::optional<double> percent, deviation;
};
[[nodiscard]] BusyShare busy_share(const std::vector<GpuSummary>& gpus);

}  // namespace saturate
