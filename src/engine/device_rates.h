// SPDX-License-Identifier: Apache-2.0
// How fast a device is: products, convolutions, memory, kernels, launches, copies. Measured by
// `saturate bench gpu --calibrate`, kept in the user's cache by the card's name, and used by the
// simulated device of that name from then on.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "engine/device_backend.h"
#include "engine/sim_model.h"

namespace saturate {

struct RateEffort {
    std::int64_t side = 4096;  // of the matrices; the rest goes by it
    int repeats = 20;
};
inline constexpr RateEffort kRateEffortOfCpu{.side = 256, .repeats = 3};

// `open` gives the device anew with these options: TF32 is chosen when it is opened.
using OpenDevice = std::function<std::unique_ptr<DeviceBackend>(const DeviceOptions&)>;
[[nodiscard]] MeasuredRates measure_rates(const OpenDevice& open, const RateEffort& effort);

[[nodiscard]] Json rates_json(const MeasuredRates& rates);
[[nodiscard]] MeasuredRates rates_of(const Json& json);  // what it does not know is absent

// `card` as the GPU table names it. Nothing measured: all absent.
[[nodiscard]] MeasuredRates find_rates(const std::string& card);
// The file. Throws MachineError when it cannot be written.
std::string keep_rates(const std::string& card, const MeasuredRates& rates);

}  // namespace saturate
