// SPDX-License-Identifier: Apache-2.0
#include "telemetry/step_tally.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

StepRecord step(std::int64_t ms, std::int64_t wait_ms) {
    return {.duration_ns = ms * 1'000'000, .samples = 8, .input_wait_ns = wait_ms * 1'000'000};
}

TEST(StepTallyTest, LeavesTheFirstStepsAndDisturbedOnesOut) {
    StepTally tally;
    for (int i = 0; i < 5; ++i) tally.add(step(1000, 900));
    for (int i = 0; i < 50; ++i) tally.add(step(20, 5));
    tally.set_disturbed(true);
    for (int i = 0; i < 50; ++i) tally.add(step(500, 5));
    tally.set_disturbed(false);
    RunSummary summary;
    tally.fill(summary);
    EXPECT_EQ(summary.steps, 105);
    EXPECT_EQ(summary.samples, 840);
    ASSERT_TRUE(summary.step_p50_ms);
    EXPECT_NEAR(*summary.step_p50_ms, 20, 0.2);  // bins of 1 %
    EXPECT_NEAR(*summary.step_p99_ms, 20, 0.2);
    EXPECT_EQ(summary.samples_per_second->n, 50);
    EXPECT_NEAR(summary.samples_per_second->median, 400, 4);
    ASSERT_EQ(summary.stall_percent.size(), 1u);
    EXPECT_EQ(summary.stall_percent[0].first, "input_wait");
    EXPECT_NEAR(summary.stall_percent[0].second, 25, 0.01);
}

TEST(StepTallyTest, TimesAllWhereThereAreFew) {
    StepTally tally;
    tally.add(step(10, 1));
    tally.add(step(10, 1));
    RunSummary summary;
    tally.fill(summary);
    EXPECT_EQ(summary.samples_per_second->n, 2);
    EXPECT_NEAR(*summary.step_p50_ms, 10, 0.1);
}

TEST(StepTallyTest, LongStepsKeepTheirLength) {
    StepTally tally;
    for (int i = 0; i < 30; ++i) tally.add(step(3'600'000, 1));
    RunSummary summary;
    tally.fill(summary);
    EXPECT_NEAR(*summary.step_p50_ms, 3.6e6, 3.6e4);
    EXPECT_NEAR(summary.samples_per_second->median, 8 / 3600.0, 3e-5);
}

TEST(StepTallyTest, UnknownStaysUnknown) {
    StepTally tally;
    RunSummary summary;
    tally.fill(summary);
    EXPECT_EQ(summary.steps, 0);
    EXPECT_FALSE(summary.samples);
    EXPECT_FALSE(summary.step_p50_ms);
    EXPECT_TRUE(summary.stall_percent.empty());
}

}  // namespace
}  // namespace saturate
