// SPDX-License-Identifier: Apache-2.0
// How a run used its device: busy share with its fluctuation, and what a batch was waited for. Of
// the steady part; several runs of the same settings add up.
#pragma once

#include <optional>
#include <vector>

#include "base/json.h"
#include "telemetry/record_reader.h"

namespace saturate {

struct DeviceUse {
    std::vector<double> busy_percent;  // one value per second or so
    std::vector<double> power_watts;   // likewise, where the device tells
    std::vector<double> wait_ms;       // mean wait for a batch, one value per run
    [[nodiscard]] std::optional<double> busy_mean() const;
    [[nodiscard]] std::optional<double> busy_deviation() const;  // points; needs two values
    [[nodiscard]] std::optional<double> wait_mean_ms() const;
    [[nodiscard]] std::optional<double> power_mean_watts() const;
};

// `dropped` steps of the record are warm-up.
void add_use(DeviceUse& use, const RunRecord& record, std::int64_t dropped);

[[nodiscard]] Json to_json(const DeviceUse& use);

}  // namespace saturate
