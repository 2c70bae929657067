// SPDX-License-Identifier: Apache-2.0
// How a run used its device: busy share with its fluctuation, and the wait per batch, over the
// steady part. Several runs of the same settings add up.
#pragma once

#include <optional>

#include "base/json.h"
#include "telemetry/record_reader.h"
#include "telemetry/statistics.h"

namespace saturate {

struct DeviceUse {
    Running busy_percent;  // weighted by time, in windows of about a second
    Running power_watts;   // likewise, if the device reports it
    Running wait_ms;       // mean wait for a batch, one value per run
    [[nodiscard]] std::optional<double> busy_mean() const { return busy_percent.mean(); }
    [[nodiscard]] std::optional<double> busy_deviation() const;  // points; needs two values
    [[nodiscard]] std::optional<double> wait_mean_ms() const { return wait_ms.mean(); }
    [[nodiscard]] std::optional<double> power_mean_watts() const { return power_watts.mean(); }
};

// `dropped`: the number of warm-up steps at the start of the record.
void add_use(DeviceUse& use, const RunRecord& record, std::int64_t dropped);

[[nodiscard]] Json to_json(const DeviceUse& use);

}  // namespace saturate
