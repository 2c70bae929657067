// SPDX-License-Identifier: Apache-2.0
#include "process/gpus.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

class OneGpu final : public DeviceReader {
  public:
    OneGpu() { driver_.gpus.push_back({.index = 0, .name = "some GPU"}); }
    [[nodiscard]] const GpuDriver& driver() const override { return driver_; }
    [[nodiscard]] std::uint64_t driver_calls() const override { return 0; }
    DeviceSample read(int gpu, ReadTiers) override { return {.gpu = gpu}; }

  private:
    GpuDriver driver_;
};

DeviceOpening no_reader(const GpuAccess&) { return {nullptr, "no driver"}; }
GpuSurvey no_survey() { return {.absent_because = "no driver"}; }
DeviceOpening a_reader(const GpuAccess&) { return {std::make_unique<OneGpu>(), ""}; }
GpuSurvey a_survey() { return {.driver = OneGpu().driver()}; }

constexpr GpuVendor kAbsent{"absent", "", no_reader, no_survey};
constexpr GpuVendor kThere{"there", "names alone", a_reader, a_survey};
constexpr GpuVendor kWhole{"whole", "", a_reader, a_survey};

TEST(GpusTest, TheFirstVendorThatHasAGpuIsAsked) {
    const GpuVendor vendors[] = {kAbsent, kThere, kWhole};
    Devices devices = open_gpus({}, std::nullopt, vendors);
    ASSERT_TRUE(devices.reader);
    EXPECT_EQ(devices.source, "there");
    ASSERT_EQ(devices.notes.size(), 1u);
    EXPECT_EQ(devices.notes[0], "NVML: no driver; taken from the there: names alone");
    GpuSurvey survey = survey_gpus(vendors);
    ASSERT_TRUE(survey.driver);
    EXPECT_EQ(survey.driver->gpus[0].name, "some GPU");
    EXPECT_EQ(survey.absent_because, "no driver");
}

TEST(GpusTest, OneThatTellsAllNeedsNoNote) {
    const GpuVendor vendors[] = {kWhole, kThere};
    EXPECT_TRUE(open_gpus({}, std::nullopt, vendors).notes.empty());
    EXPECT_EQ(survey_gpus(vendors).absent_because, "");
}

// CUDA counts the visible GPUs from 0, the driver all of them; the address is the same.
TEST(GpusTest, AGpuIsFoundByItsAddress) {
    GpuDriver driver{.gpus = {{.index = 0, .pci_bus_id = "00000000:07:00.0"},
                              {.index = 1, .pci_bus_id = "00000000:8A:00.0"}}};
    EXPECT_EQ(gpu_at(driver, "0000:8a:00.0"), 1);
    EXPECT_EQ(gpu_at(driver, "0000:07:00.0"), 0);
    EXPECT_EQ(gpu_at(driver, "0001:07:00.0"), std::nullopt);
    EXPECT_EQ(gpu_at(driver, ""), std::nullopt);
}

// CUDA's first card need not be NVML's, and its name does not tell how much memory it has.
TEST(GpusTest, ACardIsNamedByWhatItsDriverTells) {
    constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
    GpuSurvey survey{.driver = GpuDriver{.gpus = {{.index = 0,
                                                   .name = "NVIDIA GeForce RTX 4090",
                                                   .pci_bus_id = "00000000:01:00.0"},
                                                  {.index = 1,
                                                   .name = "NVIDIA GeForce RTX 3080",
                                                   .pci_bus_id = "00000000:02:00.0",
                                                   .memory_total_bytes = 12 * kGiB}}}};
    EXPECT_EQ(card_at(survey, "0000:02:00.0", "NVIDIA GeForce RTX 3080"), "RTX 3080 12GB");
    EXPECT_EQ(card_at(survey, "", "NVIDIA GeForce RTX 3080"), "RTX 3080");
    EXPECT_EQ(card_at({}, "0000:02:00.0", "Unheard Of 9"), "");
}

TEST(GpusTest, WithoutAnyTheReasonIsThatOfTheFirst) {
    const GpuVendor vendors[] = {kAbsent, kAbsent};
    Devices devices = open_gpus({}, std::nullopt, vendors);
    EXPECT_FALSE(devices.reader);
    EXPECT_EQ(devices.source, "none");
    EXPECT_EQ(devices.absent_because, "no driver");
    EXPECT_FALSE(survey_gpus(vendors).driver);
}

}  // namespace
}  // namespace saturate
