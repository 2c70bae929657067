// SPDX-License-Identifier: Apache-2.0
#include "telemetry/summary.h"

#include <algorithm>

#include "telemetry/gpu_tally.h"
#include "telemetry/statistics.h"

namespace saturate {

namespace {

constexpr double kLittleActivity = 30;   // percent of the SMs; below this, "busy" means little
constexpr double kLittleByPower = 20;    // the same by the power estimate
constexpr double kMuchThrottled = 0.05;  // share of the time

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
        cpu.add(sample.cpu_percent, interval);
        io_wait.add(sample.io_wait_percent, interval);
        own_cpu.add(sample.own_cpu_percent, interval);
        if (sample.own_memory_bytes) own_memory = sample.own_memory_bytes;
        if (auto available = sample.memory_available_bytes) {
            auto& least = host.memory_least_available_bytes;
            least = least ? std::min(*least, *available) : *available;
        }
        if (!sample.tree) return;
        host.tree_ended = sample.tree->ended;
        if (sample.tree->read_bytes) host.read_bytes = sample.tree->read_bytes;
        if (sample.tree->ended) return;
        tree_cpu.add(sample.tree->cpu_percent, interval);
        main_thread.add(sample.tree->main_thread_percent, interval);
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
    // The first tick makes extra calls (opening, constant facts), so the rate leaves it out.
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
