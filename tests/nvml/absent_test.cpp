// SPDX-License-Identifier: Apache-2.0
// A machine or a container without the driver's library.
#include <gtest/gtest.h>

#include "cuda/nvml_calls.h"
#include "support/run.h"

namespace saturate {
namespace {

TEST(NvmlAbsentTest, ADriverWithoutItsLibraryIsNotTakenForNone) {
    TemporaryFolder proc;
    EXPECT_EQ(why_no_nvml(proc.path()), "libnvidia-ml.so.1 was not found: no NVIDIA driver");
    proc.file("driver/nvidia/version",
              "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06\n");
    EXPECT_EQ(why_no_nvml(proc.path()),
              "libnvidia-ml.so.1 was not found, but the kernel has the driver: a container needs "
              "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
}

}  // namespace
}  // namespace saturate
