// SPDX-License-Identifier: Apache-2.0
// What opening a GPU says of a driver that is not there, apart for its test. Everything else of
// open_device.cpp is declared in device_backend.h.
#pragma once

#include <filesystem>
#include <string>

namespace saturate {

// Said where libcuda.so.1 cannot be loaded: a container may lack it although the kernel has the
// driver.
[[nodiscard]] std::string why_no_cuda_driver(const std::filesystem::path& proc);

}  // namespace saturate
