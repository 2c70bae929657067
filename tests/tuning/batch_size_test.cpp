// SPDX-License-Identifier: Apache-2.0
#include "tuning/batch_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tuning/model_job.h"

namespace saturate {
namespace {

BatchAnswer found(const ModelJob& job, std::int64_t start, BatchLimits limits = {}) {
    return find_batch_size(start, limits, {{"num_workers", "8"}},
                           [&](const TrialRequest& request) { return job.run(request, {}); });
}

TEST(BatchSizeTest, StopsAtTheKneeAndHasRunTheAnswer) {
    ModelJob job{.fetch = 0, .noise = 0};
    BatchAnswer answer = found(job, 32);
    // t = 4 ms + 0.2 ms b: 2 % below the best at the memory bound (670) is near b = 393.
    EXPECT_GE(answer.size, 340);
    EXPECT_LE(answer.size, 450);
    EXPECT_THAT(answer.probes, testing::Contains(testing::Field(&BatchProbe::size, answer.size)));
    EXPECT_LE(answer.probes.size(), 6u);
}

TEST(BatchSizeTest, NeverGivesASizeThatRanOutOfMemory) {
    for (double limit : {2e9, 3e9, 5e9}) {
        ModelJob job{.step_fixed = 0.1, .fetch = 0, .memory_limit = limit};
        BatchAnswer answer = found(job, 64);
        ASSERT_GT(answer.size, 0) << limit;
        EXPECT_LE(job.memory_fixed + job.memory_per_sample * static_cast<double>(answer.size),
                  0.9 * limit);
    }
}

TEST(BatchSizeTest, GoesDownWhenTheUsersOwnSizeDoesNotFit) {
    ModelJob job{.fetch = 0, .memory_limit = 1.5e9};
    BatchAnswer answer = found(job, 256);
    EXPECT_GT(answer.size, 0);
    EXPECT_LE(answer.size, 17);
    EXPECT_TRUE(answer.failed_at.has_value());
}

TEST(BatchSizeTest, TheLargestIsNotTheFastestWhenStepsGetSlower) {
    ModelJob job{.fetch = 0, .curve = 3.0, .memory_per_sample = 1e6, .noise = 0};
    BatchAnswer answer = found(job, 64, {.max = 4096});
    double best = 0;
    for (int b = 8; b <= 4096; b += 8)
        best = std::max(best, job.rate({{"batch_size", std::to_string(b)}}, true));
    EXPECT_GE(job.rate({{"batch_size", std::to_string(answer.size)}}, true), 0.94 * best)
        << answer.size;
}

TEST(BatchSizeTest, KeepsTheEffectiveBatchByAccumulation) {
    ModelJob job{.fetch = 0, .memory_per_sample = 100e6, .noise = 0};
    BatchAnswer answer = found(job, 32, {.effective_batch = 512});
    EXPECT_EQ(answer.size * answer.accumulation, 512);
}

TEST(BatchSizeTest, KeepsTheEffectiveBatchWhereTheSmallestSizeDoesNotDivideIt) {
    ModelJob job{.fetch = 0, .memory_per_sample = 100e6, .noise = 0};
    BatchAnswer answer = found(job, 12, {.min = 8, .step = 1, .effective_batch = 12});
    EXPECT_EQ(answer.size * answer.accumulation, 12) << answer.size;
}

TEST(BatchSizeTest, EndsWhereNoDivisorOfTheEffectiveBatchRuns) {
    ModelJob job{.memory_limit = 1e8};
    BatchAnswer answer = found(job, 12, {.min = 8, .step = 1, .effective_batch = 12});
    EXPECT_EQ(answer.size, 0);
}

TEST(BatchSizeTest, SaysThatNothingRan) {
    ModelJob job{.memory_limit = 1e8};
    BatchAnswer answer = found(job, 32);
    EXPECT_EQ(answer.size, 0);
    EXPECT_EQ(answer.why, "no size ran: out of memory at 1");
}

TEST(LearningRateTest, FollowsTheOptimizer) {
    EXPECT_EQ(rule_for("sgd"), LearningRateRule::linear);
    EXPECT_EQ(rule_for("adamw"), LearningRateRule::square_root);
    EXPECT_EQ(rule_for("lion"), LearningRateRule::none);
    EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, 4, LearningRateRule::linear), 0.4);
    EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, 4, LearningRateRule::square_root), 0.2);
    EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, 4, LearningRateRule::none), 0.1);
}

TEST(FitTest, FindsTheLineAndTheKnee) {
    std::vector<Point> points{{8, 5.6}, {16, 7.2}, {32, 10.4}};
    auto line = fit_line(points);
    ASSERT_TRUE(line);
    EXPECT_NEAR(line->at_zero, 4, 1e-9);
    EXPECT_NEAR(line->per_unit, 0.2, 1e-9);
    EXPECT_NEAR(line->error, 0, 1e-9);
    // 95 % of 1000 / 204: b / (4 + 0.2 b) = 4.657 at b = 271.4.
    EXPECT_NEAR(knee(*line, 1000, 0.05), 271.4, 0.1);
}

TEST(FitTest, NeedsTwoSizesAndNeverGivesANegativeCost) {
    EXPECT_FALSE(fit_line(std::vector<Point>{{8, 5}, {8, 6}}));
    auto falling = fit_line(std::vector<Point>{{8, 6}, {16, 5}});
    ASSERT_TRUE(falling);
    EXPECT_EQ(falling->per_unit, 0);
    auto steep = fit_line(std::vector<Point>{{8, 1}, {16, 4}});
    ASSERT_TRUE(steep);
    EXPECT_EQ(steep->at_zero, 0);
}

TEST(BatchSizeTest, WhatWasNotRunIsNoProbe) {
    ModelJob job;
    int left = 2;
    BatchAnswer answer = find_batch_size(64, {}, {}, [&](const TrialRequest& request) {
        if (left-- <= 0) return TrialResult{.outcome = TrialOutcome::not_run};
        return job.run(request, {});
    });
    EXPECT_EQ(answer.probes.size(), 2u);
    EXPECT_TRUE(answer.size == 64 || answer.size == 32) << answer.size;
}

// 128 to 1024 "passed" where each record had the same batch.
TEST(BatchSizeTest, ASizeThatIsNotInForceEndsTheProbes) {
    ModelJob job;
    int probes = 0;
    BatchAnswer answer = find_batch_size(32, {}, {}, [&](const TrialRequest& request) {
        TrialResult result = job.run(request, {{"batch_size", "32"}});
        if (request.settings.at("batch_size") == "32") return result;
        ++probes;
        result.outcome = TrialOutcome::not_in_force;
        return result;
    });
    EXPECT_EQ(probes, 1);
    EXPECT_EQ(answer.size, 32);
}

}  // namespace
}  // namespace saturate
