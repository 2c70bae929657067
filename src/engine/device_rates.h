// SPDX-License-Identifier: Apache-2.0
// Measures how fast a device is: matrix products, convolutions, memory, kernels, launches, copies.
// `saturate bench gpu --calibrate` measures the rates and saves them in the user's cache under the
// card's name; from then on the simulated device of that name uses them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "engine/device_backend.h"
#include "engine/sim_model.h"

namespace saturate {

struct RateEffort {
    std::int64_t side = 4096;  // of the matrices; the other sizes follow from it
    int repeats = 20;
};
inline constexpr RateEffort kRateEffortOfCpu{.side = 256, .repeats = 3};

// Opens the device again with these options, because TF32 is chosen when a device is opened.
using OpenDevice = std::function<std::unique_ptr<DeviceBackend>(const DeviceOptions&)>;
[[nodiscard]] MeasuredRates measure_rates(const OpenDevice& open, const RateEffort& effort);

[[nodiscard]] Json rates_json(const MeasuredRates& rates);
[[nodiscard]] MeasuredRates rates_of(const Json& json);  // unknown rates are absent

// `card` is a name from the GPU table. If nothing was measured, all rates are absent.
[[nodiscard]] MeasuredRates find_rates(const std::string& card);
// Returns the name of the file. Throws MachineError if it cannot be written.
std::string keep_rates(const std::string& card, const MeasuredRates& rates);

}  // namespace saturate
