// SPDX-License-Identifier: Apache-2.0
// Reads GPUs from the kernel, for machines without NVML. AMD's driver shows utilisation, memory,
// power and temperature in /sys; for NVIDIA's cards the kernel only knows the names.
#pragma once

#include <filesystem>

#include "base/device.h"

namespace saturate {

struct SysfsRoots {
    std::filesystem::path sys = "/sys";
    std::filesystem::path proc = "/proc";
};

// Returns no reader if the kernel shows no GPU.
[[nodiscard]] DeviceOpening open_sysfs(const SysfsRoots& roots = {});

}  // namespace saturate
