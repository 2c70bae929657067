// SPDX-License-Identifier: Apache-2.0
// GPUs as the kernel itself shows them, for machines without NVML: AMD's driver tells utilisation,
// memory, power and temperature in /sys; of NVIDIA's cards the kernel knows the names only.
#pragma once

#include <filesystem>

#include "base/device.h"

namespace saturate {

struct SysfsRoots {
    std::filesystem::path sys = "/sys";
    std::filesystem::path proc = "/proc";
};

// No reader when the kernel shows no GPU.
[[nodiscard]] DeviceOpening open_sysfs(const SysfsRoots& roots = {});

}  // namespace saturate
