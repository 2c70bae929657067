// SPDX-License-Identifier: Apache-2.0
#include "tuning/use.h"

#include <algorithm>
#include <span>

#include "telemetry/account.h"

namespace saturate {

namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

// Adds the device's counters, if there are any. Each one covers the second before it.
void add_counters(DeviceUse& use, const RunRecord& record, const Account& steady) {
    for (const DeviceSample& sample : record.devices) {
        if (sample.time_ns < steady.first_ns + kSecondNs || sample.time_ns > steady.last_ns)
            continue;
        if (sample.utilization_percent) use.busy_percent.add(*sample.utilization_percent);
        if (sample.power_watts) use.power_watts.add(*sample.power_watts);
    }
}

}  // namespace

std::optional<double> DeviceUse::busy_deviation() const {
    return busy_percent.n() > 1 ? busy_percent.deviation() : std::nullopt;
}

void add_use(DeviceUse& use, const RunRecord& record, std::int64_t dropped) {
    auto first = static_cast<std::size_t>(std::max<std::int64_t>(0, dropped));
    if (first >= record.steps.size()) return;
    Account steady = account_of(std::span(record.steps).subspan(first));
    std::int64_t before = use.busy_percent.n();
    add_counters(use, record, steady);
    if (use.busy_percent.n() == before) {
        for (const StepSums& window : steady.windows) {
            if (auto busy = window.percent(StepPart::device_busy))
                use.busy_percent.add(*busy, window.seconds);
        }
    }
    use.wait_ms.add(1e3 * steady.timed.sum(StepPart::input_wait) /
                    static_cast<double>(std::max<std::int64_t>(1, steady.timed.steps)));
}

Json to_json(const DeviceUse& use) {
    return Json::object({{"busy_percent", use.busy_mean()},
                         {"busy_deviation", use.busy_deviation()},
                         {"busy_n", use.busy_percent.n()},
                         {"power_watts", use.power_mean_watts()},
                         {"wait_ms_per_batch", use.wait_mean_ms()}});
}

}  // namespace saturate
