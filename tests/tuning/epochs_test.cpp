// SPDX-License-Identifier: Apache-2.0
#include "tuning/epochs.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// Epochs of 4 steps of 10 ms and 8 samples. Each begins with 5 ms of the loader and a first batch
// that is waited for 3 ms longer; after every `every`-th there is an evaluation of 20 ms.
RunRecord epochs(int count, int every) {
    RunRecord out;
    std::int64_t now = 0, step = 0;
    for (int epoch = 0; epoch < count; ++epoch) {
        out.events.push_back(
            {.kind = EventKind::epoch, .time_ns = now, .duration_ns = 5 * kMs, .step = step});
        now += 5 * kMs;
        for (int i = 0; i < 4; ++i) {
            std::int64_t wait = i == 0 ? 4 * kMs : 1 * kMs;
            StepRecord one{.step = step++, .start_ns = now, .duration_ns = 9 * kMs + wait};
            one.samples = 8;
            one.input_wait_ns = wait;
            out.steps.push_back(one);
            now += one.duration_ns;
        }
        if (epoch % every != 0) continue;
        out.events.push_back(
            {.kind = EventKind::evaluation, .time_ns = now, .duration_ns = 20 * kMs, .step = step});
        now += 20 * kMs;
    }
    return out;
}

TEST(EpochsTest, AnEpochIsAllThatStandsBetweenItsSteps) {
    EpochTimes times = epoch_times(epochs(4, 1));
    EXPECT_EQ(times.steps, 4);
    EXPECT_EQ(times.seen, 2);
    EXPECT_NEAR(times.seconds, 0.068, 1e-9);  // 5 + 43 + 20 ms
    EXPECT_NEAR(times.evaluation.value_or(0), 0.020, 1e-9);
    EXPECT_NEAR(times.checkpoint.value_or(-1), 0, 1e-9);
    EXPECT_NEAR(times.start.value_or(0), 0.008, 1e-9);
}

TEST(EpochsTest, OneEndOfAnEpochTellsWhatItHolds) {
    EpochTimes times = epoch_times(epochs(2, 1));
    EXPECT_EQ(times.seen, 0);
    EXPECT_NEAR(times.evaluation.value_or(0), 0.020, 1e-9);
    EXPECT_NEAR(times.start.value_or(0), 0.008, 1e-9);
}

TEST(EpochsTest, TheRateCountsPauses) {
    EXPECT_NEAR(rate_over_epochs(epochs(4, 1), {.count = 2}).value_or(0), 32 / 0.068, 1e-6);
    // Behind epochs 0 and 5: one evaluation in the five epochs behind the first.
    EXPECT_NEAR(rate_over_epochs(epochs(8, 5), {.count = 5}).value_or(0), 160 / (5 * 0.048 + 0.020),
                1e-6);
    EXPECT_EQ(rate_over_epochs(epochs(3, 1), {.count = 2}), std::nullopt);
    // From a step into the first to a step into the second.
    EXPECT_NEAR(rate_over_epochs(epochs(2, 1), {.count = 1, .warm_up = 1}).value_or(0), 32 / 0.068,
                1e-6);
    EXPECT_EQ(rate_over_epochs(epochs(2, 1), {.count = 1, .warm_up = 4}), std::nullopt);
}

TEST(EpochsTest, WithoutAWholeEpochTheLoaderTells) {
    RunRecord run = epochs(1, 1);
    run.python = Json::parse(
        R"({"loaders": [{"id": 0, "dataset_size": 100, "batch_size": 8, "drop_last": false}],
            "steps_by_loader": [{"loader": 0, "steps": 4}], "totals": {"steps": 4, "batches": 8}})",
        "test");
    EpochTimes times = epoch_times(run);
    EXPECT_EQ(times.steps, 7);  // 13 batches, two of them to a step
    EXPECT_EQ(times.start, std::nullopt);
    EXPECT_NEAR(times.start_most.value_or(0), 0.009, 1e-9);  // the loader and the first batch
    EXPECT_EQ(times.seen, 0);
    EXPECT_FALSE(times.evaluation);
    run.python = Json();
    EXPECT_EQ(epoch_times(run).steps, 0);
}

TEST(EpochsTest, ATrialLastsWholeEpochsWhereTheProofFitsTheBudget) {
    TuneBudget budget(240, false);  // 4 s of a trial
    EXPECT_EQ(plan_epochs({.steps = 10, .seconds = 0.5}, 1, budget, 20).count, 8);
    EXPECT_EQ(plan_epochs({.steps = 10, .seconds = 0.5}, 1, budget, 20).least_steps, 92);
    EXPECT_EQ(plan_epochs({.steps = 10, .seconds = 0.5}, 5, budget, 20).count, 10);
    // Five would be too many, two are not.
    EXPECT_EQ(plan_epochs({.steps = 10, .seconds = 4}, 5, budget, 20).count, 2);
    EXPECT_EQ(plan_epochs({.steps = 10, .seconds = 6}, 5, budget, 20).count, 1);
    EXPECT_EQ(plan_epochs({.steps = 10, .seconds = 40}, 1, budget, 20).count, 0);
    // Two whole ones would be too long, one and a part of the next are not.
    EpochPlan part = plan_epochs({.steps = 10, .seconds = 9}, 5, budget, 20);
    EXPECT_EQ(part.count, 1);
    EXPECT_EQ(part.warm_up, 2);
    EXPECT_EQ(part.least_steps, 14);
    // Little time is left, but a trial of steps would take as long.
    EXPECT_EQ(plan_epochs({.steps = 10, .seconds = 0.5}, 1, budget, 235).count, 4);
    EXPECT_EQ(plan_epochs({}, 1, budget, 20).count, 0);
    EpochTimes longer{.steps = 10, .seconds = 40};
    double enough = budget_for_epochs(longer, 2, budget, 20);
    EXPECT_EQ(plan_epochs(longer, 1, TuneBudget(enough, false), 20).count, 2);
}

TEST(EpochsTest, EpochsThatAScriptHasNotAreNotMeasured) {
    EpochPlan plan{.count = 10, .unit = 5, .least_steps = 92};
    plan.shorten(8);
    EXPECT_EQ(plan.count, 5);
    plan.shorten(4);
    EXPECT_EQ(plan.count, 0);
    EXPECT_EQ(plan.least_steps, 0);
}

}  // namespace
}  // namespace saturate
