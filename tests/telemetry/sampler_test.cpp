// SPDX-License-Identifier: Apache-2.0
#include "telemetry/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/run.h"
#include "telemetry/summary.h"
#include "telemetry/sysfs_device.h"

namespace saturate {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// A GPU whose answers the test writes.
class FakeReader final : public DeviceReader {
  public:
    explicit FakeReader(int gpus) {
        for (int i = 0; i < gpus; ++i) driver_.gpus.push_back({.index = i, .name = "Fake"});
    }
    [[nodiscard]] const GpuDriver& driver() const override { return driver_; }
    [[nodiscard]] std::uint64_t driver_calls() const override { return calls; }
    DeviceSample read(int gpu, ReadTiers tiers) override {
        ++calls;
        asked.push_back((tiers.medium ? "m" : "-") + std::string(tiers.processes ? "p" : "-"));
        DeviceSample sample{.gpu = gpu, .time_ns = time_ns};
        if (gpu == lost) {
            sample.fault = "GPU is lost";
            return sample;
        }
        sample.utilization_percent = utilization;
        if (tiers.medium) sample.temperature_celsius = 60;
        if (tiers.processes) sample.processes = std::vector<GpuProcess>{{.pid = 4}};
        return sample;
    }
    std::vector<std::string> asked;
    std::int64_t time_ns = 0;
    double utilization = 50;
    int lost = -1;
    std::uint64_t calls = 0;

  private:
    GpuDriver driver_;
};

TEST(DeadlinesTest, DoNotDrift) {
    Deadlines deadlines(1000, 0.1);
    std::int64_t now = 1000;
    for (int i = 1; i <= 100'000; ++i) {
        now = deadlines.next(now + 90'000'000);  // each tick takes 90 ms of its 100
        ASSERT_EQ(now, 1000 + i * 100'000'000LL);
    }
    EXPECT_EQ(deadlines.lost(), 0u);
}

TEST(DeadlinesTest, ALateTickIsTakenAtOnceAndWhatLiesFurtherBackIsCounted) {
    Deadlines deadlines(0, 1);
    EXPECT_EQ(deadlines.next(kSecond * 3 / 2), kSecond);  // half a second late: still that tick
    EXPECT_EQ(deadlines.lost(), 0u);
    EXPECT_EQ(deadlines.next(kSecond * 11 / 2), 5 * kSecond);
    EXPECT_EQ(deadlines.lost(), 3u);
    EXPECT_EQ(deadlines.next(kSecond * 11 / 2), 6 * kSecond);
}

TEST(SamplerTest, AsksSlowThingsLessOftenAndHoldsThem) {
    FakeReader reader(1);
    NullRecorder nothing;
    Sampler sampler({.interval_seconds = 1}, &reader, nullptr, "", nothing);
    for (int t = 0; t <= 10; ++t) {
        reader.time_ns = t * kSecond;
        const Snapshot& snapshot = sampler.tick(t * kSecond, 0);
        EXPECT_EQ(snapshot.devices[0].temperature_celsius, 60) << t;
        EXPECT_EQ(sampler.readings()[0].temperature_celsius.has_value(), t == 0 || t % 2 == 1) << t;
        ASSERT_EQ(snapshot.processes.size(), 1u);
    }
    EXPECT_THAT(reader.asked, testing::ElementsAre("mp", "m-", "--", "m-", "--", "mp", "--", "m-",
                                                   "--", "m-", "-p"));
}

TEST(SamplerTest, ALostGpuIsMarkedAndTheOthersGoOn) {
    FakeReader reader(2);
    MemoryRecorder recorder;
    Sampler sampler({}, &reader, nullptr, "", recorder);
    sampler.tick(0, 0);
    reader.lost = 1;
    const Snapshot& snapshot = sampler.tick(kSecond, 0);
    sampler.tick(2 * kSecond, 0);
    EXPECT_EQ(snapshot.devices[0].utilization_percent, 50);
    EXPECT_EQ(snapshot.devices[1].fault, "GPU is lost");
    EXPECT_EQ(snapshot.devices[1].utilization_percent, std::nullopt);
    ASSERT_EQ(recorder.events.size(), 1u);
    EXPECT_EQ(recorder.events[0].kind, EventKind::gpu_lost);
    EXPECT_EQ(recorder.events[0].text, "GPU 1: GPU is lost");
    reader.lost = -1;
    sampler.tick(3 * kSecond, 0);
    EXPECT_EQ(recorder.events.back().text, "GPU 1 answers again");
    EXPECT_EQ(recorder.devices.size(), 8u);
}

TEST(SamplerTest, WatchesTheGpusAskedForAndRefusesOthers) {
    FakeReader reader(4);
    NullRecorder nothing;
    Sampler sampler({.gpus = {0, 2}}, &reader, nullptr, "", nothing);
    const Snapshot& snapshot = sampler.tick(0, 0);
    ASSERT_EQ(snapshot.devices.size(), 2u);
    EXPECT_EQ(snapshot.devices[1].gpu, 2);
    try {
        Sampler wrong({.gpus = {4}}, &reader, nullptr, "", nothing);
        FAIL() << "no error";
    } catch (const UserError& error) {
        EXPECT_STREQ(error.what(), "error: no GPU 4\n  expected: 0 to 3");
    }
}

TEST(SysfsTest, ReadsWhatAmdsDriverShowsAndOnlyTheNameOfOthers) {
    TemporaryFolder root;
    auto card = [&](const std::string& address, const std::string& name, const std::string& text) {
        root.file("sys/bus/pci/devices/" + address + "/" + name, text);
    };
    card("0000:01:00.0", "vendor", "0x1002\n");
    card("0000:01:00.0", "class", "0x038000\n");
    card("0000:01:00.0", "product_name", "AMD Instinct MI300X\n");
    card("0000:01:00.0", "gpu_busy_percent", "87\n");
    card("0000:01:00.0", "mem_info_vram_total", "1000\n");
    card("0000:01:00.0", "mem_info_vram_used", "400\n");
    card("0000:01:00.0", "hwmon/hwmon3/power1_average", "250000000\n");
    card("0000:01:00.0", "hwmon/hwmon3/power1_cap", "750000000\n");
    card("0000:01:00.0", "hwmon/hwmon3/temp1_input", "55000\n");
    card("0000:02:00.0", "vendor", "0x10de\n");
    card("0000:02:00.0", "class", "0x030000\n");
    card("0000:02:00.0", "device", "0x2684\n");
    root.file("proc/driver/nvidia/gpus/0000:02:00.0/information",
              "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ: 1\n");
    card("0000:03:00.0", "vendor", "0x8086\n");
    DeviceOpening opening = open_sysfs({root.path() / "sys", root.path() / "proc"});
    ASSERT_TRUE(opening.reader);
    const GpuDriver& driver = opening.reader->driver();
    ASSERT_EQ(driver.gpus.size(), 2u);
    EXPECT_EQ(driver.gpus[0].name, "AMD Instinct MI300X");
    EXPECT_EQ(driver.gpus[1].name, "NVIDIA GeForce RTX 4090");
    DeviceSample amd = opening.reader->read(0, {});
    EXPECT_EQ(amd.utilization_percent, 87);
    EXPECT_EQ(amd.memory_used_bytes, 400u);
    EXPECT_DOUBLE_EQ(*amd.power_watts, 250);
    EXPECT_DOUBLE_EQ(*amd.power_limit_watts, 750);
    EXPECT_DOUBLE_EQ(*amd.temperature_celsius, 55);
    DeviceSample other = opening.reader->read(1, {});
    EXPECT_EQ(other.utilization_percent, std::nullopt);
    EXPECT_EQ(other.power_watts, std::nullopt);
    EXPECT_FALSE(open_sysfs({root.path() / "none", root.path() / "none"}).reader);
}

}  // namespace
}  // namespace saturate
