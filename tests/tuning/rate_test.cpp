// SPDX-License-Identifier: Apache-2.0
#include "tuning/rate.h"

#include <gtest/gtest.h>

#include <random>

namespace saturate {
namespace {

std::vector<StepRecord> steps_of(const std::vector<double>& seconds, std::int64_t samples = 32) {
    std::vector<StepRecord> steps;
    std::int64_t at = 0;
    for (double s : seconds) {
        auto ns = static_cast<std::int64_t>(s * 1e9);
        steps.push_back({.step = static_cast<std::int64_t>(steps.size()),
                         .start_ns = at,
                         .duration_ns = ns,
                         .samples = samples});
        at += ns;
    }
    return steps;
}

std::vector<double> noisy(int n, double mean, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(mean, 0.03 * mean);
    std::vector<double> out;
    for (int i = 0; i < n; ++i) out.push_back(noise(random));
    return out;
}

TEST(RateTest, TellsWhereTheTimeOfAStepGoes) {
    std::vector<StepRecord> steps = steps_of(std::vector<double>(20, 0.1));
    for (StepRecord& step : steps) {
        step.copy_ns = 10'000'000;
        step.log_ns = 5'000'000;
        step.device_busy_ns = 80'000'000;
    }
    auto rate = rate_of(steps);
    ASSERT_TRUE(rate);
    EXPECT_NEAR(rate->copy_share, 0.1, 1e-9);
    EXPECT_NEAR(rate->log_share, 0.05, 1e-9);
    EXPECT_NEAR(rate->device_busy_share.value_or(0), 0.8, 1e-9);
    steps[7].device_busy_ns.reset();
    EXPECT_FALSE(rate_of(steps)->device_busy_share) << "unknown of one step is unknown";
}

TEST(RateTest, IsHopelessWhenNoWindowComesNear) {
    Rate rate{.per_second = 80, .low = 70, .high = 89, .n = 4};
    EXPECT_TRUE(is_hopeless(rate, 90));
    EXPECT_FALSE(is_hopeless(rate, 85));
    rate.n = 3;
    EXPECT_FALSE(is_hopeless(rate, 90));
}

TEST(RateTest, DropsASlowStartWhateverItsLength) {
    for (int warm : {1, 3, 12, 30}) {
        std::vector<double> seconds(static_cast<std::size_t>(warm), 0.5);
        for (double s : noisy(100, 0.1, 3)) seconds.push_back(s);
        auto rate = rate_of(steps_of(seconds));
        ASSERT_TRUE(rate) << warm;
        EXPECT_EQ(rate->dropped, warm);
        EXPECT_NEAR(rate->per_second, 320, 10);
    }
}

TEST(RateTest, DropsTwoStagesOfWarmUp) {
    std::vector<double> seconds(2, 30.0);
    for (double s : noisy(10, 0.3, 1)) seconds.push_back(s);
    for (double s : noisy(80, 0.1, 2)) seconds.push_back(s);
    auto rate = rate_of(steps_of(seconds));
    ASSERT_TRUE(rate);
    EXPECT_EQ(rate->dropped, 12);
}

TEST(RateTest, DropsAFastStartThatOnlyFillsTheQueue) {
    std::vector<double> seconds{0.9, 0.07, 0.07, 0.07, 0.07, 0.07, 0.07};
    for (double s : noisy(60, 0.1, 3)) seconds.push_back(s);
    auto rate = rate_of(steps_of(seconds));
    ASSERT_TRUE(rate);
    EXPECT_EQ(rate->dropped, 7);
    EXPECT_NEAR(rate->per_second, 320, 5);
}

// The end of an epoch holds the host up, and it makes up for that while the device works on.
TEST(RateTest, StepsThatMakeUpForALongOneAreNotTheRate) {
    std::vector<double> seconds;
    for (int epoch = 0; epoch < 4; ++epoch) {
        seconds.push_back(0.3);
        for (int i = 0; i < 11; ++i) seconds.push_back(0.09);
    }
    auto rate = rate_of(steps_of(seconds));
    ASSERT_TRUE(rate);
    EXPECT_NEAR(rate->per_second, 32 * 12 / (0.3 + 11 * 0.09), 12);
    EXPECT_LT(rate->spread(), 0.06);
}

TEST(RateTest, KeepsASteadyRunWhole) {
    auto rate = rate_of(steps_of(noisy(64, 0.1, 5)));
    ASSERT_TRUE(rate);
    EXPECT_EQ(rate->dropped, 0);
    EXPECT_TRUE(is_known_well(*rate));
    EXPECT_NEAR(rate->trend, 0, 0.05);
}

TEST(RateTest, SeesAJobThatGetsSlower) {
    std::vector<double> seconds;
    for (int i = 0; i < 100; ++i) seconds.push_back(0.1 * (1 + 0.01 * i));
    auto rate = rate_of(steps_of(seconds));
    ASSERT_TRUE(rate);
    EXPECT_GT(rate->trend, 0.3);
    EXPECT_FALSE(is_known_well(*rate));
}

TEST(RateTest, TwoLongStepsAfterTheFirstAreEnough) {
    auto rate = rate_of(steps_of({9, 2, 2.2}));
    ASSERT_TRUE(rate);
    EXPECT_EQ(rate->dropped, 1);
    EXPECT_EQ(rate->n, 2);
    EXPECT_NEAR(rate->per_second, 64 / 4.2, 1e-6);
    EXPECT_FALSE(rate_of(steps_of({2})));
}

TEST(RateTest, SaysNothingOfTooFewSteps) {
    EXPECT_FALSE(rate_of(steps_of({0.1, 0.1, 0.1})));
    EXPECT_FALSE(rate_of(std::vector<StepRecord>{}));
}

}  // namespace
}  // namespace saturate
