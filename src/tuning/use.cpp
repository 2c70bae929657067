// SPDX-License-Identifier: Apache-2.0
#include "tuning/use.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace saturate {

namespace {

constexpr std::int64_t kWindowNs = 1'000'000'000;

std::optional<double> mean_of(const std::vector<double>& values) {
    if (values.empty()) return std::nullopt;
    double sum = 0;
    for (double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

// Counters of the device where there are any; each tells of the second before it.
void add_counters(DeviceUse& use, const RunRecord& record, std::int64_t from_ns,
                  std::int64_t to_ns) {
    for (const DeviceSample& sample : record.devices) {
        bool inside = sample.time_ns >= from_ns + kWindowNs && sample.time_ns <= to_ns;
        if (inside && sample.utilization_percent)
            use.busy_percent.push_back(*sample.utilization_percent);
        if (inside && sample.power_watts) use.power_watts.push_back(*sample.power_watts);
    }
}

// What the steps themselves tell, in windows of a second.
void add_windows(DeviceUse& use, std::span<const StepRecord> steps) {
    double busy = 0, whole = 0;
    for (const StepRecord& step : steps) {
        if (!step.device_busy_ns) return;
        busy += static_cast<double>(*step.device_busy_ns);
        whole += static_cast<double>(step.duration_ns);
        if (whole < static_cast<double>(kWindowNs)) continue;
        use.busy_percent.push_back(std::min(100.0, 100 * busy / whole));
        busy = whole = 0;
    }
}

}  // namespace

std::optional<double> DeviceUse::busy_mean() const { return mean_of(busy_percent); }

std::optional<double> DeviceUse::busy_deviation() const {
    auto mean = busy_mean();
    if (busy_percent.size() < 2) return std::nullopt;
    double squares = 0;
    for (double value : busy_percent) squares += (value - *mean) * (value - *mean);
    return std::sqrt(squares / static_cast<double>(busy_percent.size() - 1));
}

std::optional<double> DeviceUse::wait_mean_ms() const { return mean_of(wait_ms); }

std::optional<double> DeviceUse::power_mean_watts() const { return mean_of(power_watts); }

void add_use(DeviceUse& use, const RunRecord& record, std::int64_t dropped) {
    auto first = static_cast<std::size_t>(std::max<std::int64_t>(0, dropped));
    if (first >= record.steps.size()) return;
    std::span<const StepRecord> steady = std::span(record.steps).subspan(first);
    std::size_t before = use.busy_percent.size();
    const StepRecord& last = steady.back();
    add_counters(use, record, steady.front().start_ns, last.start_ns + last.duration_ns);
    if (use.busy_percent.size() == before) add_windows(use, steady);
    double waited = 0;
    for (const StepRecord& step : steady)
        waited += static_cast<double>(step.input_wait_ns.value_or(0)) / 1e6;
    use.wait_ms.push_back(waited / static_cast<double>(steady.size()));
}

Json to_json(const DeviceUse& use) {
    return Json::object({{"busy_percent", use.busy_mean()},
                         {"busy_deviation", use.busy_deviation()},
                         {"busy_n", use.busy_percent.size()},
                         {"power_watts", use.power_mean_watts()},
                         {"wait_ms_per_batch", use.wait_mean_ms()}});
}

}  // namespace saturate
