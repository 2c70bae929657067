// SPDX-License-Identifier: Apache-2.0
#include "telemetry/summary.h"

#include <algorithm>
#include <array>

#include "telemetry/statistics.h"

namespace saturate {

namespace {

// A CUDA context alone lifts an idle GPU's power (an H100 of 700 W: from 72 to 122 W). Where the
// run never showed an idle moment, this share of the limit stands for it.
constexpr double kIdleShareOfLimit = 122.0 / 700.0;
constexpr double kIdleUtilisation = 5;   // percent: up to here a GPU counts as idle
constexpr double kLittleActivity = 30;   // percent of SMs: under this, "busy" means little
constexpr double kLittleByPower = 20;    // the same by the power estimate
constexpr double kMuchThrottled = 0.05;  // share of the time
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

std::optional<double> real(const std::optional<std::uint64_t>& value) {
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

void add(Running& running, const std::optional<double>& value, double weight) {
    if (value) running.add(*value, weight);
}

class GpuTally {
  public:
    explicit GpuTally(GpuIdentity gpu) : gpu_(std::move(gpu)) {}

    void add(const DeviceSample& sample, double interval_seconds);
    [[nodiscard]] GpuSummary summary() const;

  private:
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
    // Readings wait until it is known whether the driver's own samples cover their time.
    std::vector<Waiting> waiting_;
    Running utilisation_;
    PercentHistogram histogram_;
    bool any_ring_ = false;
    Running memory_, power_, idle_power_, busy_power_, temperature_, memory_temperature_, clock_,
        sm_, tensor_, dram_;
    std::optional<double> memory_total_, power_limit_, clock_max_;
    Counter energy_, pcie_tx_, pcie_rx_;
    double power_joules_ = 0;
    double joules_since_counter_ = 0;  // by power, after the counter's last reading
    std::array<Counter, kThrottles.size()> throttle_counters_;
    std::array<double, kThrottles.size()> throttle_seen_seconds_{};
    std::optional<std::uint64_t> reasons_;
    bool any_reasons_ = false;
};

void GpuTally::add(const DeviceSample& sample, double interval_seconds) {
    fault_ = sample.fault;
    if (sample.fault) {
        last_ns_.reset();  // the time without answers counts for nothing
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
    saturate::add(memory_, real(sample.memory_used_bytes), seconds);
    saturate::add(power_, sample.power_watts, seconds);
    if (sample.power_watts && is_later) {
        power_joules_ += *sample.power_watts * seconds;
        joules_since_counter_ += *sample.power_watts * seconds;
    }
    if (sample.energy_joules) joules_since_counter_ = 0;
    if (sample.power_watts && sample.utilization_percent) {
        (*sample.utilization_percent <= kIdleUtilisation ? idle_power_ : busy_power_)
            .add(*sample.power_watts, seconds);
    }
    saturate::add(temperature_, sample.temperature_celsius, 1);
    saturate::add(memory_temperature_, sample.memory_temperature_celsius, 1);
    saturate::add(clock_, sample.clock_sm_mhz, seconds);
    saturate::add(sm_, sample.sm_active_percent, seconds);
    saturate::add(tensor_, sample.tensor_active_percent, seconds);
    saturate::add(dram_, sample.dram_active_percent, seconds);
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

// The driver's own samples, several per second, show the true fluctuation; they replace the
// readings of the time they cover. An idle GPU gives none: then the readings stand.
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

// How far power rises above idle, as a share of what the limit leaves.
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

double throttled_seconds(const GpuSummary& gpu, std::string_view part) {
    double seconds = 0;
    for (const ThrottleShare& share : gpu.throttle) {
        if (share.reason.find(part) != std::string::npos) seconds += share.seconds;
    }
    return seconds;
}

void judge(GpuSummary& gpu, const Thresholds& limits, const HostSummary& host, double seconds) {
    auto say = [&](VerdictReason reason) { gpu.reasons.push_back(reason); };
    if (!gpu.utilisation_mean) {
        say(gpu.gpu.mig.value_or(false) ? VerdictReason::mig : VerdictReason::no_utilisation);
    } else {
        double mean = *gpu.utilisation_mean;
        bool fluctuates =
            gpu.utilisation_n > 1 && *gpu.utilisation_deviation > limits.fluctuation_points;
        bool spins = mean >= limits.low_percent &&
                     (gpu.sm_active_mean      ? *gpu.sm_active_mean < kLittleActivity
                      : gpu.activity_estimate ? *gpu.activity_estimate < kLittleByPower
                                              : false);
        gpu.level = mean < limits.low_percent || spins           ? VerdictLevel::low
                    : mean >= limits.good_percent && !fluctuates ? VerdictLevel::good
                                                                 : VerdictLevel::fair;
        if (mean < limits.low_percent) say(VerdictReason::low_utilisation);
        if (spins) say(VerdictReason::busy_but_idle);
        if (fluctuates) say(VerdictReason::fluctuates);
    }
    if (gpu.fault) {
        say(VerdictReason::lost);
        gpu.level = VerdictLevel::low;
    }
    if (throttled_seconds(gpu, "power_cap") > kMuchThrottled * seconds)
        say(VerdictReason::power_capped);
    if (throttled_seconds(gpu, "thermal") > kMuchThrottled * seconds) say(VerdictReason::thermal);
    if (gpu.temperature_peak_celsius.value_or(0) > limits.temperature_celsius)
        say(VerdictReason::hot);
    bool cpu_full = host.cpu_mean.value_or(0) > limits.cpu_percent;
    if (cpu_full && gpu.level != VerdictLevel::good) say(VerdictReason::cpu_full);
}

}  // namespace

std::string_view verdict_name(VerdictLevel level) {
    constexpr std::string_view kNames[] = {"good", "fair", "low", "unknown"};
    return kNames[static_cast<int>(level)];
}

std::string_view verdict_reason_name(VerdictReason reason) {
    constexpr std::string_view kNames[] = {
        "no_utilisation", "mig",          "lost", "low_utilisation", "fluctuates",
        "busy_but_idle",  "power_capped", "hot",  "thermal",         "cpu_full"};
    return kNames[static_cast<int>(reason)];
}

struct Summarizer::Impl {
    Thresholds thresholds;
    std::vector<GpuTally> gpus;
    std::string absent_because;
    std::optional<std::int64_t> first_ns;
    std::int64_t last_ns = 0;
    std::uint64_t calls = 0, first_calls = 0, ticks = 0, lost_ticks = 0;
    Running cpu, io_wait, tree_cpu, main_thread, own_cpu;
    std::optional<std::uint64_t> own_memory;
    HostSummary host;

    void add_host(const HostSample& sample, double interval) {
        saturate::add(cpu, sample.cpu_percent, interval);
        saturate::add(io_wait, sample.io_wait_percent, interval);
        saturate::add(own_cpu, sample.own_cpu_percent, interval);
        if (sample.own_memory_bytes) own_memory = sample.own_memory_bytes;
        if (auto available = sample.memory_available_bytes) {
            auto& least = host.memory_least_available_bytes;
            least = least ? std::min(*least, *available) : *available;
        }
        if (!sample.tree) return;
        host.tree_ended = sample.tree->ended;
        if (sample.tree->read_bytes) host.read_bytes = sample.tree->read_bytes;
        if (sample.tree->ended) return;
        saturate::add(tree_cpu, sample.tree->cpu_percent, interval);
        saturate::add(main_thread, sample.tree->main_thread_percent, interval);
        host.loader_workers =
            std::max(host.loader_workers.value_or(0), sample.tree->loader_workers);
    }
};

Summarizer::Summarizer(const Thresholds& thresholds) : impl_(std::make_unique<Impl>()) {
    impl_->thresholds = thresholds;
}
Summarizer::~Summarizer() = default;

void Summarizer::add(const Snapshot& snapshot, const std::vector<DeviceSample>& readings) {
    Impl& self = *impl_;
    if (!self.first_ns) {
        self.first_ns = snapshot.time_ns;
        self.first_calls = snapshot.driver_calls;
        for (const GpuIdentity& gpu : snapshot.gpus) self.gpus.emplace_back(gpu);
    }
    self.last_ns = snapshot.time_ns;
    self.calls = snapshot.driver_calls;
    self.lost_ticks = snapshot.late_ticks;
    self.absent_because = snapshot.devices_absent_because;
    ++self.ticks;
    for (std::size_t i = 0; i < std::min(readings.size(), self.gpus.size()); ++i) {
        self.gpus[i].add(readings[i], snapshot.interval_seconds);
    }
    self.add_host(snapshot.host, snapshot.interval_seconds);
}

Summary Summarizer::summary() const {
    const Impl& self = *impl_;
    Summary out{.devices_absent_because = self.absent_because, .thresholds = self.thresholds};
    if (self.first_ns) out.seconds = static_cast<double>(self.last_ns - *self.first_ns) / 1e9;
    out.host = self.host;
    out.host.cpu_mean = self.cpu.mean();
    out.host.cpu_peak = self.cpu.most();
    out.host.io_wait_mean = self.io_wait.mean();
    out.host.tree_cpu_mean = self.tree_cpu.mean();
    out.host.main_thread_mean = self.main_thread.mean();
    out.own = {.cpu_percent = self.own_cpu.mean(), .memory_bytes = self.own_memory};
    // The first tick also opens and asks what is asked once: the rate is of the ticks after it.
    if (out.seconds > 0) {
        out.own.driver_calls_per_second =
            static_cast<double>(self.calls - self.first_calls) / out.seconds;
    }
    out.own.ticks = self.ticks;
    out.own.lost_ticks = self.lost_ticks;
    auto badness = [](VerdictLevel level) {
        return level == VerdictLevel::unknown ? -1 : static_cast<int>(level);
    };
    for (const GpuTally& tally : self.gpus) {
        GpuSummary gpu = tally.summary();
        judge(gpu, self.thresholds, out.host, out.seconds);
        if (badness(gpu.level) > badness(out.level)) out.level = gpu.level;
        for (VerdictReason reason : gpu.reasons) {
            if (std::ranges::find(out.reasons, reason) == out.reasons.end())
                out.reasons.push_back(reason);
        }
        out.gpus.push_back(std::move(gpu));
    }
    if (out.gpus.empty()) {
        out.reasons.push_back(VerdictReason::no_utilisation);
        if (out.host.cpu_mean.value_or(0) > self.thresholds.cpu_percent)
            out.reasons.push_back(VerdictReason::cpu_full);
    }
    return out;
}

}  // namespace saturate
