// SPDX-License-Identifier: Apache-2.0
// Checks that this machine computes what plain loops compute, and that every path of the engine
// works on this device. Called by `saturate selftest`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/selftest.h"
#include "engine/device_backend.h"

namespace saturate {

// Checks of the engine on this device, which must outlive the items.
[[nodiscard]] std::vector<SelftestItem> selftest_items(DeviceBackend& backend);

// Its parts, one file each.
[[nodiscard]] std::vector<SelftestItem> selftest_step_items(DeviceBackend& backend);
[[nodiscard]] std::vector<SelftestItem> selftest_captured_items(DeviceBackend& backend);
[[nodiscard]] std::vector<SelftestItem> selftest_run_items(DeviceBackend& backend);

// Opens a rank's device and sets its collectives in the group; called in the rank's thread.
using OpenRank = std::function<std::unique_ptr<DeviceBackend>(ProcessGroup& group)>;
// Compares gradients summed over `count` ranks of this process with one process on the whole batch.
[[nodiscard]] SelftestItem selftest_ranks_item(int count, OpenRank open);
// Runs eight steps on another device, opened in a separate thread.
[[nodiscard]] SelftestItem selftest_device_item(
    std::string name, std::function<std::unique_ptr<DeviceBackend>()> open);

// Version of the LibTorch that this was built with: "2.15.0".
[[nodiscard]] std::string torch_version();

// The checks and the device they run on.
struct SelftestList {
    std::string device;  // "cpu", "cuda:0 (NVIDIA H100)"
    std::unique_ptr<DeviceBackend> backend;
    std::vector<SelftestItem> items;
};
[[nodiscard]] SelftestList selftest_cpu();
// Loads libsaturate_cuda.so from the program's folder. Throws MachineError if this build has none
// or the machine has no usable GPU.
[[nodiscard]] SelftestList selftest_cuda();

// Runs one check; an exception counts as a failure.
[[nodiscard]] SelftestCheck run_check(const SelftestItem& item);

}  // namespace saturate
