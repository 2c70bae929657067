// SPDX-License-Identifier: Apache-2.0
#include "telemetry/account.h"

#include <gtest/gtest.h>

#include "telemetry/run_gather.h"

namespace saturate {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// Steps one after another, each with its start.
class Steps {
  public:
    void add(std::int64_t ms, std::int64_t wait_ms, std::int64_t gap_ms = 0) {
        StepRecord step{.step = static_cast<std::int64_t>(all.size()),
                        .start_ns = at_,
                        .duration_ns = ms * kMs,
                        .samples = 8,
                        .input_wait_ns = wait_ms * kMs};
        all.push_back(step);
        at_ += (ms + gap_ms) * kMs;
    }
    std::vector<StepRecord> all;

  private:
    std::int64_t at_ = 0;
};

// Four workers that need 400 ms for a batch each: four batches come at a time, the model needs 10.
Steps bursts(int rounds) {
    Steps steps;
    for (int round = 0; round < rounds; ++round) {
        steps.add(370, 360);
        for (int i = 0; i < 3; ++i) steps.add(10, 0);
    }
    return steps;
}

TEST(AccountTest, ARateIsSamplesOverTimeWhereBatchesComeSeveralAtATime) {
    Account account = account_of(bursts(200).all);
    ASSERT_TRUE(account.samples_per_second);
    EXPECT_NEAR(account.samples_per_second->rate, 80, 0.8);  // the median step's is 800
    EXPECT_NEAR(account.samples_per_second->median, 80, 1.6);
    EXPECT_NEAR(account.samples_per_second->low, 80, 4);
    EXPECT_NEAR(account.samples_per_second->high, 80, 4);
    EXPECT_GT(account.samples_per_second->n, 5);
    EXPECT_NEAR(*account.steady.percent(StepPart::input_wait), 90, 0.5);
}

TEST(AccountTest, AWindowHoldsSeveralRoundsOfTheWorkers) {
    Account account = account_of(bursts(100).all);
    for (const StepSums& window : account.windows) {
        EXPECT_GE(window.seconds, 1);
        EXPECT_GE(window.steps, 16);
    }
}

TEST(AccountTest, TheLengthOfARunDoesNotChangeItsFigures) {
    for (int rounds : {50, 5'000, 250'000}) {
        RunAccount account;
        for (int round = 0; round < rounds; ++round) {
            for (const StepRecord& step : bursts(1).all) {
                StepRecord moved = step;
                moved.start_ns += round * 400 * kMs;
                account.add(moved);
            }
        }
        Account all = account.account();
        EXPECT_EQ(all.steps, 4 * rounds);
        EXPECT_EQ(all.samples, 32 * rounds);
        EXPECT_NEAR(all.samples_per_second->rate, 80, 0.8) << rounds;
        EXPECT_NEAR(*all.step_p50_ms, 10, 0.1);
        EXPECT_NEAR(*all.step_p99_ms, 370, 3.7);
        EXPECT_LE(all.parts.size(), 256u);
    }
}

TEST(AccountTest, LeavesWarmUpAndStepsUnderAProfilerOut) {
    Steps steps;
    for (int i = 0; i < 5; ++i) steps.add(1000, 900);
    for (int i = 0; i < 50; ++i) steps.add(20, 5);
    for (int i = 0; i < 50; ++i) {
        steps.add(500, 5);
        steps.all.back().profiled = 1;
    }
    Account account = account_of(steps.all);
    EXPECT_EQ(account.steps, 105);
    EXPECT_EQ(account.samples, 840);
    EXPECT_EQ(account.warm_up, 5);
    EXPECT_NEAR(account.samples_per_second->rate, 400, 1e-6);
    EXPECT_NEAR(*account.step_p50_ms, 20, 1e-6);
    RunSummary summary;
    account.fill(summary);
    ASSERT_EQ(summary.stall_percent.size(), 1u);
    EXPECT_EQ(summary.stall_percent[0].first, "input_wait");
    EXPECT_NEAR(summary.stall_percent[0].second, 25, 0.01);
}

// The workers went on while the first step compiled: what was ready then says nothing of the rate.
TEST(AccountTest, BatchesThatWereReadyAfterTheWarmUpAreNoPartOfTheRate) {
    for (int rounds : {5, 20, 200}) {
        Steps steps;
        steps.add(27'000, 400);
        for (int i = 0; i < 8; ++i) steps.add(10, 0);
        for (const StepRecord& step : bursts(rounds).all)
            steps.add(step.duration_ns / kMs, *step.input_wait_ns / kMs);
        Account account = account_of(steps.all);
        ASSERT_TRUE(account.samples_per_second) << rounds;
        EXPECT_NEAR(account.samples_per_second->rate, 80, 4) << rounds;
    }
}

TEST(AccountTest, WhereTheLoaderKeepsUpEveryStepBehindTheWarmUpCounts) {
    Steps steps;
    steps.add(27'000, 400);
    for (int i = 0; i < 20; ++i) steps.add(10, 0);
    EXPECT_EQ(account_of(steps.all).warm_up, 1);
    // One that waits now and then is no loader that is behind.
    steps.add(20, 10);
    for (int i = 0; i < 20; ++i) steps.add(10, 0);
    EXPECT_EQ(account_of(steps.all).warm_up, 1);
}

TEST(AccountTest, WhatLiesBetweenTwoStepsIsPartOfThemUnlessItIsAPause) {
    Steps steps;
    for (int i = 0; i < 100; ++i) steps.add(10, 0, i % 20 == 19 ? 500 : 2);
    EXPECT_NEAR(account_of(steps.all).samples_per_second->rate, 8 / 0.012, 8 / 0.012 * 0.02);
}

TEST(AccountTest, PausesAreCountedFromEveryEvent) {
    std::vector<EventRecord> events;
    for (int i = 0; i < 50'000; ++i)
        events.push_back({.kind = EventKind::evaluation, .duration_ns = kMs});
    events.push_back({.kind = EventKind::checkpoint, .duration_ns = 3'000 * kMs});
    // Written by a thread of its own: training goes on.
    events.push_back({.kind = EventKind::checkpoint,
                      .duration_ns = 9'000 * kMs,
                      .values = Json::object({{"path", "x"}})});
    Account account = account_of({}, events);
    EXPECT_EQ(account.evaluations.count, 50'000);
    EXPECT_NEAR(account.pause_seconds(), 53, 1e-6);
}

TEST(AccountTest, AnIntervalIsTheStepsSinceTheLast) {
    RunAccount account;
    Steps steps = bursts(2);
    for (int i = 0; i < 4; ++i) account.add(steps.all[static_cast<std::size_t>(i)]);
    StepSums first = account.take_interval();
    EXPECT_EQ(first.steps, 4);
    EXPECT_NEAR(*first.samples_per_second(), 80, 1e-6);
    account.add(steps.all[4]);
    EXPECT_EQ(account.take_interval().steps, 1);
    EXPECT_EQ(account.account().steps, 5);
    EXPECT_EQ(account.account().timed.steps, 5);
}

TEST(AccountTest, ABusyShareAndItsDeviationAreOverWindows) {
    Steps steps;
    for (int i = 0; i < 400; ++i) {
        steps.add(100, 0);
        steps.all.back().device_busy_ns = (i / 100 % 2 == 0 ? 90 : 30) * kMs;
    }
    Account account = account_of(steps.all);
    EXPECT_NEAR(*account.busy_percent, 60, 0.1);
    EXPECT_NEAR(*account.busy_deviation, 30, 3);
    RunSummary summary{.busy_percent = 12};  // by the device's counters
    account.fill(summary);
    EXPECT_EQ(summary.busy_percent, 12);
}

TEST(AccountTest, LongStepsKeepTheirLength) {
    Steps steps;
    for (int i = 0; i < 3000; ++i) steps.add(3'600'000, 1);
    Account account = account_of(steps.all);
    EXPECT_NEAR(*account.step_p50_ms, 3.6e6, 3.6e4);
    EXPECT_NEAR(account.samples_per_second->rate, 8 / 3600.0, 3e-5);
}

TEST(AccountTest, UnknownStaysUnknown) {
    RunSummary summary;
    RunAccount().fill(summary);
    EXPECT_EQ(summary.steps, 0);
    EXPECT_FALSE(summary.samples);
    EXPECT_FALSE(summary.samples_per_second);
    EXPECT_FALSE(summary.step_p50_ms);
    EXPECT_FALSE(summary.busy_percent);
    EXPECT_TRUE(summary.stall_percent.empty());
}

TEST(AccountTest, OfFewStepsAllAreTimed) {
    Steps steps;
    steps.add(10, 1);
    steps.add(10, 1);
    Account account = account_of(steps.all);
    EXPECT_EQ(account.steady.steps, 2);
    EXPECT_NEAR(account.samples_per_second->rate, 800, 1e-6);
    EXPECT_EQ(account.samples_per_second->n, 1);
}

TEST(AccountTest, AFirstStepThatCompiledIsWarmUpHoweverFewFollow) {
    for (int more = 1; more < 8; ++more) {
        Steps compiled, waited;
        compiled.add(19'000, 5);
        waited.add(370, 360);
        for (int i = 0; i < more; ++i) {
            compiled.add(70, 3);
            waited.add(10, 0);
        }
        EXPECT_EQ(account_of(compiled.all).warm_up, 1) << more;
        // The next round of the workers is as long, as far as one can tell.
        if (more < 4) {
            EXPECT_EQ(account_of(waited.all).warm_up, 0) << more;
        }
    }
}

TEST(ThinnedTest, KeepsTheFirstTheLastAndAnEvenChoiceBetween) {
    for (int n : {1, 9, 10, 11, 137, 4096}) {
        Thinned<int> some(10);
        for (int i = 0; i < n; ++i) some.add(i);
        std::vector<int> kept = some.values();
        EXPECT_LE(kept.size(), 11u);
        EXPECT_EQ(kept.front(), 0);
        EXPECT_EQ(kept.back(), n - 1);
        EXPECT_EQ(some.seen(), n);
    }
}

}  // namespace
}  // namespace saturate
