// SPDX-License-Identifier: Apache-2.0
// GPUs that sleep are seen without opening the driver, which would wake them.
#include <gtest/gtest.h>

#include "cuda/nvml.h"
#include "support/run.h"

namespace saturate {
namespace {

struct Machine {
    TemporaryFolder root;

    void gpu(const std::string& address, const std::string& status, const char* kind = "0x030200") {
        std::string folder = "bus/pci/drivers/nvidia/" + address + "/";
        root.file(folder + "class", std::string(kind) + "\n");
        root.file(folder + "power/runtime_status", status + "\n");
    }
    [[nodiscard]] NvmlSettings settings() const { return {.sys = root.path()}; }
};

TEST(SleepingGpuTest, IsNamedAndLeftAsleep) {
    Machine machine;
    machine.gpu("0000:65:00.0", "suspended");
    machine.gpu("0000:01:00.0", "suspended");
    machine.gpu("0000:01:00.1", "suspended", "0x040300");  // its sound
    machine.root.file("bus/pci/drivers/nvidia/new_id", "");
    GpuSurvey survey = survey_nvml(machine.settings());
    ASSERT_TRUE(survey.driver);
    ASSERT_EQ(survey.driver->gpus.size(), 2u);
    EXPECT_EQ(survey.driver->gpus[0].pci_bus_id, "0000:01:00.0");
    EXPECT_EQ(survey.driver->gpus[1].pci_bus_id, "0000:65:00.0");
    EXPECT_TRUE(survey.driver->gpus[1].suspended);
    DeviceOpening opening = open_nvml(machine.settings());
    EXPECT_FALSE(opening.reader);
    EXPECT_EQ(opening.absent_because, "every GPU is " + survey.driver->gpus[0].fault.value());
}

TEST(SleepingGpuTest, OneThatIsAwakeLetsTheDriverBeAsked) {
    Machine machine;
    machine.gpu("0000:01:00.0", "suspended");
    machine.gpu("0000:02:00.0", "active");
    GpuSurvey survey = survey_nvml(machine.settings());
    if (!survey.driver) {
        EXPECT_NE(survey.absent_because, "");  // no driver on the machine that tests
        return;
    }
    for (const GpuIdentity& gpu : survey.driver->gpus) EXPECT_FALSE(gpu.suspended);
}

}  // namespace
}  // namespace saturate
