// SPDX-License-Identifier: Apache-2.0
// Does this machine compute what plain loops compute? Called by `saturate selftest`.
#pragma once

#include <vector>

#include "base/selftest.h"

namespace saturate {

class DeviceBackend;

// The engine's own paths on this device.
[[nodiscard]] std::vector<SelftestCheck> selftest_engine(DeviceBackend& backend);

[[nodiscard]] std::vector<SelftestCheck> selftest_cpu();
// Through libsaturate_cuda.so, loaded from beside the program. Throws MachineError when this build
// has none, or the machine no usable GPU.
[[nodiscard]] std::vector<SelftestCheck> selftest_cuda();

}  // namespace saturate
