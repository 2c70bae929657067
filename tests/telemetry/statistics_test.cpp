// SPDX-License-Identifier: Apache-2.0
#include "telemetry/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace saturate {
namespace {

TEST(RunningTest, WithoutValuesNothingIsKnown) {
    Running running;
    EXPECT_EQ(running.mean(), std::nullopt);
    EXPECT_EQ(running.deviation(), std::nullopt);
    EXPECT_EQ(running.most(), std::nullopt);
}

TEST(RunningTest, WeighsByTime) {
    Running running;
    running.add(100, 3);
    running.add(0, 1);
    EXPECT_DOUBLE_EQ(*running.mean(), 75);
    EXPECT_DOUBLE_EQ(*running.deviation(), std::sqrt(0.75 * 0.25) * 100);
    EXPECT_EQ(running.least(), 0);
    EXPECT_EQ(running.most(), 100);
    running.add(std::nan(""), 1);
    running.add(5, 0);
    EXPECT_EQ(running.n(), 2);
}

TEST(RunningTest, KeepsSmallChangesOfLargeValues) {
    Running running;
    for (int i = 0; i < 100'000; ++i) running.add(1e9 + (i % 2));
    EXPECT_NEAR(*running.deviation(), 0.5, 1e-6);
}

TEST(PercentHistogramTest, GivesQuantilesToHalfAPoint) {
    PercentHistogram histogram;
    EXPECT_EQ(histogram.quantile(0.5), std::nullopt);
    for (int i = 1; i <= 100; ++i) histogram.add(i);
    EXPECT_EQ(histogram.quantile(0.05), 5);
    EXPECT_EQ(histogram.quantile(0.95), 95);
    histogram.add(250, 1000);  // beyond the scale counts as 100
    EXPECT_EQ(histogram.quantile(0.5), 100);
}

}  // namespace
}  // namespace saturate
