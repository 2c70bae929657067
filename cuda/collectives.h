// SPDX-License-Identifier: Apache-2.0
// NCCL among the ranks that share a store: what CudaPlugin::collectives is.
#pragma once

#include <memory>
#include <string>

#include "base/selftest.h"
#include "engine/process_group.h"

namespace saturate {

// A sum and a broadcast over all GPUs of this host, a thread for each.
[[nodiscard]] SelftestCheck check_collectives();

[[nodiscard]] std::string nccl_version();

[[nodiscard]] std::unique_ptr<DeviceCollectives> open_nccl(c10d::Store& store, int rank, int count);

}  // namespace saturate
