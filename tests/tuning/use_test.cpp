// SPDX-License-Identifier: Apache-2.0
#include "tuning/use.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// Steps of a tenth of a second, busy for `busy` of it, each after a wait of 5 ms.
RunRecord record_of(int steps, double busy) {
    RunRecord record;
    for (int i = 0; i < steps; ++i) {
        record.steps.push_back({.step = i,
                                .start_ns = i * kSecond / 10,
                                .duration_ns = kSecond / 10,
                                .input_wait_ns = 5'000'000});
        record.steps.back().device_busy_ns = static_cast<std::int64_t>(busy * 1e8);
    }
    return record;
}

TEST(DeviceUseTest, TakesTheDevicesCountersOfTheSteadyPart) {
    RunRecord record = record_of(50, 0.3);
    for (int second = 1; second <= 6; ++second) {
        DeviceSample sample{.gpu = 0, .time_ns = second * kSecond};
        sample.utilization_percent = second <= 2 ? 0 : second % 2 == 0 ? 60 : 40;
        sample.power_watts = 100;
        record.devices.push_back(sample);
    }
    DeviceUse use;
    add_use(use, record, 10);  // the first second is warm-up
    // At 2 s it tells of the second before, which is steady; at 6 s the run was over.
    EXPECT_EQ(use.busy_percent.n(), 4);
    EXPECT_DOUBLE_EQ(*use.busy_mean(), 35);
    EXPECT_NEAR(*use.wait_mean_ms(), 5, 1e-9);
    EXPECT_DOUBLE_EQ(*use.power_mean_watts(), 100);
}

TEST(DeviceUseTest, WithoutCountersTheStepsTell) {
    DeviceUse use;
    add_use(use, record_of(50, 0.3), 10);
    EXPECT_GE(use.busy_percent.n(), 2);
    EXPECT_NEAR(*use.busy_mean(), 30, 1e-6);
    EXPECT_NEAR(*use.busy_deviation(), 0, 1e-6);
    EXPECT_FALSE(use.power_mean_watts().has_value());
}

TEST(DeviceUseTest, OfNothingNothingIsKnown) {
    DeviceUse use;
    add_use(use, RunRecord{}, 0);
    EXPECT_FALSE(use.busy_mean().has_value());
    EXPECT_FALSE(use.busy_deviation().has_value());
    EXPECT_FALSE(use.wait_mean_ms().has_value());
}

}  // namespace
}  // namespace saturate
