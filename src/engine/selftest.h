// SPDX-License-Identifier: Apache-2.0
// Does this machine compute what plain loops compute, and does every path of the engine work on
// this device? Called by `saturate selftest`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/selftest.h"
#include "engine/device_backend.h"

namespace saturate {

// The engine's own paths on this device, which outlives the items.
[[nodiscard]] std::vector<SelftestItem> selftest_items(DeviceBackend& backend);

// Parts of it, one file each.
[[nodiscard]] std::vector<SelftestItem> selftest_step_items(DeviceBackend& backend);
[[nodiscard]] std::vector<SelftestItem> selftest_captured_items(DeviceBackend& backend);
[[nodiscard]] std::vector<SelftestItem> selftest_run_items(DeviceBackend& backend);

// A rank's own device, and its collectives in the group; called in the rank's thread.
using OpenRank = std::function<std::unique_ptr<DeviceBackend>(ProcessGroup& group)>;
// Gradients summed over so many ranks of this process, against one process on the whole batch.
[[nodiscard]] SelftestItem selftest_ranks_item(int count, OpenRank open);
// Eight steps on a further device, opened in a thread of its own.
[[nodiscard]] SelftestItem selftest_device_item(
    std::string name, std::function<std::unique_ptr<DeviceBackend>()> open);

// Of the LibTorch that this was built with: "2.15.0".
[[nodiscard]] std::string torch_version();

// Items and the device that they run on.
struct SelftestList {
    std::string device;  // "cpu", "cuda:0 (NVIDIA H100)"
    std::unique_ptr<DeviceBackend> backend;
    std::vector<SelftestItem> items;
};
[[nodiscard]] SelftestList selftest_cpu();
// Through libsaturate_cuda.so, loaded from beside the program. Throws MachineError when this build
// has none, or the machine no usable GPU.
[[nodiscard]] SelftestList selftest_cuda();

// One check; what it throws is a check that failed.
[[nodiscard]] SelftestCheck run_check(const SelftestItem& item);

}  // namespace saturate
