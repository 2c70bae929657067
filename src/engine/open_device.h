// SPDX-License-Identifier: Apache-2.0
// The explanation for a missing CUDA driver, declared here for its test. The rest of
// open_device.cpp is declared in device_backend.h.
#pragma once

#include <filesystem>
#include <string>

namespace saturate {

// Explains why libcuda.so.1 cannot be loaded: a container may lack it although the kernel has the
// driver.
[[nodiscard]] std::string why_no_cuda_driver(const std::filesystem::path& proc);

}  // namespace saturate
