// SPDX-License-Identifier: Apache-2.0
#include "engine/device_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/fake_device.h"
#include "engine/sim_backend.h"
#include "support/run.h"

namespace saturate {
namespace {

TEST(DeviceRatesTest, ACpuTellsWhatItHas) {
    auto open = [](const DeviceOptions&) { return make_cpu_backend({.threads = 1}, false); };
    MeasuredRates rates = measure_rates(open, {.side = 64, .repeats = 1});
    EXPECT_GT(rates.matrix[0].value_or(0), 0);
    EXPECT_GT(rates.convolution[0].value_or(0), 0);
    EXPECT_GT(rates.memory_bytes_per_second.value_or(0), 0);
    EXPECT_GT(rates.launch_seconds.value_or(0), 0);
    EXPECT_FALSE(rates.kernel_seconds);  // nothing is captured
    EXPECT_FALSE(rates.copy_bytes_per_second);
    EXPECT_EQ(rates_of(Json::parse(rates_json(rates).line(), "")), rates);
}

// The fake device takes a microsecond for whatever it is given.
TEST(DeviceRatesTest, RatesAreAmountsOverTheDevicesTime) {
    auto open = [](const DeviceOptions&) {
        auto device = std::make_unique<FakeDevice>();
        device->times_late = 0;
        return device;
    };
    MeasuredRates rates = measure_rates(open, {.side = 64, .repeats = 2});
    EXPECT_NEAR(*rates.matrix[0], 2.0 * 64 * 64 * 64 * 2 / 1e-6, 1);
    EXPECT_NEAR(*rates.memory_bytes_per_second, 12.0 * 4 * 64 * 64 * 2 / 1e-6, 1);
    EXPECT_NEAR(*rates.kernel_seconds, 1e-6 / 5 / 200, 1e-15);
    EXPECT_GT(*rates.copy_bytes_per_second, 0);
}

StepCost one_product() {
    return {.ops = {{.name = "mm", .kind = OpClass::matrix, .flops_per_sample = 1e12},
                    {.name = "add", .bytes_per_sample = 1e9}}};
}

TEST(DeviceRatesTest, TheModelTakesWhatWasMeasured) {
    const GpuFacts gpu = match_gpu("RTX 4090", {}, {})->facts;
    MeasuredRates rates;
    EXPECT_EQ(simulate_step(one_product(), gpu, {}, 1).device_seconds,
              simulate_step(one_product(), gpu, {}, 1, rates).device_seconds);
    rates.matrix[0] = 1e12;
    rates.memory_bytes_per_second = 1e9;
    rates.launch_seconds = 0.25;
    SimStep step = simulate_step(one_product(), gpu, {}, 1, rates);
    EXPECT_DOUBLE_EQ(step.device_seconds, 1 + 1);
    EXPECT_DOUBLE_EQ(step.host_seconds, 0.5);
    // Another precision was not measured.
    EXPECT_LT(
        simulate_step(one_product(), gpu, {.precision = Precision::bf16}, 1, rates).device_seconds,
        1);
    rates.copy_bytes_per_second = 1e6;
    EXPECT_DOUBLE_EQ(simulated_copy(1e6, true, rates), 1);
}

TEST(DeviceRatesTest, TheSimulatedDeviceUsesTheKeptOnesAndSaysSo) {
    TemporaryFolder folder;
    std::string cache = folder.path() / "cache";
    const char* before = std::getenv("SATURATE_CACHE");
    std::string kept = before ? before : "";
    ::setenv("SATURATE_CACHE", cache.c_str(), 1);
    EXPECT_EQ(make_sim_backend("4090", {})->name(), "sim:RTX 4090 (simulated)");
    MeasuredRates rates{.launch_seconds = 1e-3};
    std::string file = keep_rates("RTX 4090", rates);
    EXPECT_EQ(find_rates("RTX 4090"), rates);
    EXPECT_EQ(make_sim_backend("4090", {})->name(),
              "sim:RTX 4090 (simulated, with the rates measured here)");
    EXPECT_EQ(make_sim_backend("H100 SXM", {})->name().find("measured"), std::string::npos);
    folder.file("cache/rates/RTX-4090.json", "torn");
    EXPECT_EQ(find_rates("RTX 4090"), MeasuredRates{});
    if (before)
        ::setenv("SATURATE_CACHE", kept.c_str(), 1);
    else
        ::unsetenv("SATURATE_CACHE");
}

}  // namespace
}  // namespace saturate
