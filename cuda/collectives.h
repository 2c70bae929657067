// SPDX-License-Identifier: Apache-2.0
// NCCL for the ranks that share a store: implements CudaPlugin::collectives.
#pragma once

#include <memory>
#include <string>

#include "base/selftest.h"
#include "engine/process_group.h"

namespace saturate {

// Checks a sum and a broadcast over all GPUs of this host, with one thread per GPU.
[[nodiscard]] SelftestCheck check_collectives();

[[nodiscard]] std::string nccl_version();

[[nodiscard]] std::unique_ptr<DeviceCollectives> open_nccl(c10d::Store& store, int rank, int count);

}  // namespace saturate
