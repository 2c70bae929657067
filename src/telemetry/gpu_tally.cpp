// SPDX-License-Identifier: Apache-2.0
#include "telemetry/gpu_tally.h"

#include <algorithm>

namespace saturate {

namespace {

// A CUDA context alone raises the power of an idle GPU (an H100 of 700 W: from 72 to 122 W). This
// share of the limit stands for the idle power if the run had no idle moment.
constexpr double kIdleShareOfLimit = 122.0 / 700.0;
constexpr double kIdleUtilisation = 5;  // percent; a GPU up to this value counts as idle
constexpr double kRingPatienceSeconds = 3;

struct Throttle {
    std::string_view name;
    std::optional<std::uint64_t> ThrottleTimes::*time;
    std::uint64_t bit;
};
constexpr std::array<Throttle, 5> kThrottles = {{
    {"power_cap", &ThrottleTimes::power_cap_ns, kThrottlePowerCap},
    {"sync_boost", &ThrottleTimes::sync_boost_ns, kThrottleSyncBoost},
    {"software_thermal", &ThrottleTimes::software_thermal_ns, kThrottleSoftwareThermal},
    {"hardware_thermal", &ThrottleTimes::hardware_thermal_ns, kThrottleHardwareThermal},
    {"power_brake", &ThrottleTimes::power_brake_ns, kThrottlePowerBrake},
}};

std::optional<double> real(const std::optional<std::uint64_t>& value) {
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

}  // namespace

void GpuTally::add(const DeviceSample& sample, double interval_seconds) {
    fault_ = sample.fault;
    if (sample.fault) {
        last_ns_.reset();  // the time without readings does not count
        return;
    }
    double seconds =
        last_ns_ ? static_cast<double>(sample.time_ns - *last_ns_) / 1e9 : interval_seconds;
    if (seconds <= 0) seconds = interval_seconds;
    bool is_later = last_ns_.has_value();
    last_ns_ = sample.time_ns;
    ++ticks_;
    if (is_later) seconds_ += seconds;
    take_utilisation(sample, seconds);
    memory_.add(real(sample.memory_used_bytes), seconds);
    power_.add(sample.power_watts, seconds);
    if (sample.power_watts && is_later) {
        power_joules_ += *sample.power_watts * seconds;
        joules_since_counter_ += *sample.power_watts * seconds;
    }
    if (sample.energy_joules) joules_since_counter_ = 0;
    if (sample.power_watts && sample.utilization_percent) {
        (*sample.utilization_percent <= kIdleUtilisation ? idle_power_ : busy_power_)
            .add(*sample.power_watts, seconds);
    }
    temperature_.add(sample.temperature_celsius, 1);
    memory_temperature_.add(sample.memory_temperature_celsius, 1);
    clock_.add(sample.clock_sm_mhz, seconds);
    sm_.add(sample.sm_active_percent, seconds);
    tensor_.add(sample.tensor_active_percent, seconds);
    dram_.add(sample.dram_active_percent, seconds);
    if (sample.memory_total_bytes) memory_total_ = real(sample.memory_total_bytes);
    if (sample.power_limit_watts) power_limit_ = sample.power_limit_watts;
    if (sample.clock_sm_max_mhz) clock_max_ = sample.clock_sm_max_mhz;
    energy_.add(sample.energy_joules);
    pcie_tx_.add(real(sample.pcie_tx_bytes));
    pcie_rx_.add(real(sample.pcie_rx_bytes));
    if (reasons_ && is_later) {
        for (std::size_t i = 0; i < kThrottles.size(); ++i) {
            if (*reasons_ & kThrottles[i].bit) throttle_seen_seconds_[i] += seconds;
        }
    }
    if (sample.throttle_reasons) {
        reasons_ = sample.throttle_reasons;
        any_reasons_ = true;
    }
    for (std::size_t i = 0; i < kThrottles.size(); ++i) {
        throttle_counters_[i].add(real(sample.throttle.*kThrottles[i].time));
    }
}

// The driver's own samples, several per second, show the true fluctuation and replace the readings
// of the time that they cover. An idle GPU gives no such samples; then the readings count.
void GpuTally::take_utilisation(const DeviceSample& sample, double seconds) {
    if (sample.utilization_percent) {
        waiting_.push_back({sample.time_ns, *sample.utilization_percent, seconds});
    }
    if (!sample.utilization_ring.empty()) {
        double covered = 0;
        for (const Waiting& reading : waiting_) covered += reading.seconds;
        if (waiting_.empty()) covered = seconds;
        double each = covered / static_cast<double>(sample.utilization_ring.size());
        for (const DriverSample& entry : sample.utilization_ring) {
            utilisation_.add(entry.percent, each);
            histogram_.add(entry.percent, each);
        }
        any_ring_ = true;
        waiting_.clear();
        return;
    }
    use_pending(static_cast<double>(sample.time_ns) - kRingPatienceSeconds * 1e9);
}

void GpuTally::use_pending(double until_ns) {
    auto kept = waiting_.begin();
    for (; kept != waiting_.end() && static_cast<double>(kept->time_ns) <= until_ns; ++kept) {
        utilisation_.add(kept->percent, kept->seconds);
        histogram_.add(kept->percent, kept->seconds);
    }
    waiting_.erase(waiting_.begin(), kept);
}

// Returns how far power rises above idle, in percent of the range from idle to the limit.
std::optional<double> GpuTally::activity_by_power() const {
    if (!power_limit_ || *power_limit_ <= 0 || !busy_power_.mean()) return std::nullopt;
    double idle =
        idle_power_.mean().value_or(std::min(*power_.least(), kIdleShareOfLimit * *power_limit_));
    if (*power_limit_ <= idle) return std::nullopt;
    return std::clamp(100 * (*busy_power_.mean() - idle) / (*power_limit_ - idle), 0.0, 100.0);
}

void GpuTally::sum_throttle(GpuSummary& out) const {
    for (std::size_t i = 0; i < kThrottles.size(); ++i) {
        std::optional<double> seconds;
        if (auto rise = throttle_counters_[i].rise()) {
            seconds = *rise / 1e9;
        } else if (any_reasons_) {
            seconds = throttle_seen_seconds_[i];
            out.throttle_is_estimate = true;
        }
        if (!seconds) continue;
        out.throttle_known = true;
        constexpr double kWorthTelling = 0.001;
        if (*seconds >= kWorthTelling)
            out.throttle.push_back({std::string(kThrottles[i].name), *seconds});
    }
    std::ranges::sort(out.throttle, std::greater<>(), &ThrottleShare::seconds);
}

GpuSummary GpuTally::summary() const {
    GpuTally done = *this;  // small: bounded by a few seconds of waiting readings
    done.use_pending(9.3e18);
    GpuSummary out{.gpu = gpu_, .fault = fault_, .ticks = ticks_};
    out.from_ring = any_ring_;
    out.utilisation_n = done.utilisation_.n();
    out.utilisation_mean = done.utilisation_.mean();
    out.utilisation_deviation = done.utilisation_.deviation();
    out.utilisation_p5 = done.histogram_.quantile(0.05);
    out.utilisation_p95 = done.histogram_.quantile(0.95);
    out.memory_mean_bytes = memory_.mean();
    out.memory_peak_bytes = memory_.most();
    out.memory_total_bytes = memory_total_;
    out.power_mean_watts = power_.mean();
    out.power_peak_watts = power_.most();
    out.power_limit_watts = power_limit_;
    if (auto counted = energy_.rise()) out.energy_joules = *counted + joules_since_counter_;
    if (!out.energy_joules && power_.n() > 1) {
        out.energy_joules = power_joules_;
        out.energy_is_estimate = true;
    }
    out.temperature_peak_celsius = temperature_.most();
    out.memory_temperature_peak_celsius = memory_temperature_.most();
    out.clock_mean_mhz = clock_.mean();
    out.clock_max_mhz = clock_max_;
    sum_throttle(out);
    out.sm_active_mean = sm_.mean();
    out.tensor_active_mean = tensor_.mean();
    out.dram_active_mean = dram_.mean();
    if (!out.sm_active_mean) out.activity_estimate = activity_by_power();
    if (seconds_ > 0) {
        if (auto bytes = pcie_tx_.rise()) out.pcie_tx_bytes_per_second = *bytes / seconds_;
        if (auto bytes = pcie_rx_.rise()) out.pcie_rx_bytes_per_second = *bytes / seconds_;
    }
    return out;
}

BusyShare busy_share(const std::vector<GpuSummary>& gpus) {
    Running means;
    BusyShare out;
    for (const GpuSummary& gpu : gpus) {
        if (!gpu.utilisation_mean) continue;
        means.add(*gpu.utilisation_mean);
        if (gpu.utilisation_deviation)
            out.deviation = std::max(out.deviation.value_or(0), *gpu.utilisation_deviation);
    }
    out.percent = means.mean();
    return out;
}

}  // namespace saturate
