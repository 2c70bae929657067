// SPDX-License-Identifier: Apache-2.0
// The names of the optional members of a record, for writing and reading its lines.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/device.h"
#include "telemetry/record.h"

namespace saturate {

template <typename Record, typename Value>
struct RecordField {
    std::string_view name;
    std::optional<Value> Record::*member;
};

inline constexpr RecordField<StepRecord, std::int64_t> kStepFields[] = {
    {"samples", &StepRecord::samples},
    {"input_wait_ns", &StepRecord::input_wait_ns},
    {"copy_ns", &StepRecord::copy_ns},
    {"forward_ns", &StepRecord::forward_ns},
    {"backward_ns", &StepRecord::backward_ns},
    {"optimizer_ns", &StepRecord::optimizer_ns},
    {"communication_ns", &StepRecord::communication_ns},
    {"communication_total_ns", &StepRecord::communication_total_ns},
    {"communication_bytes", &StepRecord::communication_bytes},
    {"collectives", &StepRecord::collectives},
    {"synchronisation_ns", &StepRecord::synchronisation_ns},
    {"log_ns", &StepRecord::log_ns},
    {"device_busy_ns", &StepRecord::device_busy_ns},
    {"loss_step", &StepRecord::loss_step},
    {"profiled", &StepRecord::profiled},
};
// step, start and duration are always there; a loss may be NaN.
static_assert(sizeof(StepRecord) ==
                  3 * sizeof(std::int64_t) + sizeof(std::optional<double>) +
                      std::size(kStepFields) * sizeof(std::optional<std::int64_t>),
              "a member of StepRecord has no name in kStepFields");

inline constexpr RecordField<ThrottleTimes, std::uint64_t> kThrottleFields[] = {
    {"power_cap_ns", &ThrottleTimes::power_cap_ns},
    {"sync_boost_ns", &ThrottleTimes::sync_boost_ns},
    {"software_thermal_ns", &ThrottleTimes::software_thermal_ns},
    {"hardware_thermal_ns", &ThrottleTimes::hardware_thermal_ns},
    {"power_brake_ns", &ThrottleTimes::power_brake_ns},
};

}  // namespace saturate
