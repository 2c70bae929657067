// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/error.h"
#include "engine/device_backend.h"
#include "engine/selftest.h"

namespace saturate {

std::vector<SelftestCheck> selftest_cuda() {
    std::string why;
    const CudaPlugin* plugin = load_cuda_plugin(why);
    if (!plugin) {
        throw MachineError(
            {.found = why,
             .expected =
                 "a build on a machine with an NVIDIA driver, where ./saturate fetches the rest",
             .fix = "./saturate selftest builds it; or tools/bootstrap torch, then tools/build "
                    "release"});
    }
    std::vector<SelftestCheck> checks;
    std::string failure = plugin->selftest(checks);
    if (!failure.empty()) {
        throw MachineError({.found = fmt::format("no usable GPU: {}", failure),
                            .expected = "an NVIDIA driver and a GPU that this process may use",
                            .fix = "saturate doctor tells what is there"});
    }
    // Without TF32, so that the GPU can be held to float's own precision.
    std::unique_ptr<DeviceBackend> backend = plugin->open(0, {.tf32 = false});
    for (SelftestCheck& check : selftest_engine(*backend)) checks.push_back(std::move(check));
    return checks;
}

}  // namespace saturate
