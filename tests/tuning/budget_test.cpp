// SPDX-License-Identifier: Apache-2.0
#include "tuning/budget.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

TrialResult took(double start_seconds, double step_seconds) {
    TrialResult result;
    result.samples_per_second =
        Rate{.per_second = 32 / step_seconds, .steps = 10, .step_seconds = step_seconds};
    result.seconds = start_seconds + 10 * step_seconds;
    return result;
}

TEST(TuneBudgetTest, WhatTheProofNeedsIsSetAsideAndGrowsWithStartAndStep) {
    TuneBudget quick(300, true), slow_start(300, true), slow_step(300, true);
    quick.see(took(1, 0.01));
    slow_start.see(took(6, 0.01));
    slow_step.see(took(1, 1.5));
    EXPECT_GE(quick.reserve(), 2 * kProofPairs * quick.proof_run_seconds());
    EXPECT_GT(slow_start.reserve(), quick.reserve() + 50);
    EXPECT_GT(slow_step.reserve(), quick.reserve() + 50);
    EXPECT_LT(slow_step.reserve(), 0.75 * 300);
    EXPECT_GT(quick.left_for_search(0), 150);
}

// Ten steps of 10 ms with an evaluation of 20 s in between: the start took 1 s all the same.
TEST(TuneBudgetTest, PausesBetweenTheStepsAreNoPartOfTheStart) {
    TuneBudget plain(300, true), pauses(300, true);
    plain.see(took(1, 0.01));
    TrialResult result = took(21, 0.01);
    for (int i = 0; i < 10; ++i)
        result.record.steps.push_back({.step = i,
                                       .start_ns = i * 10'000'000 + (i < 5 ? 0 : 20'000'000'000),
                                       .duration_ns = 10'000'000});
    pauses.see(result);
    EXPECT_NEAR(pauses.proof_run_seconds(), plain.proof_run_seconds(), 0.1);
}

TEST(TuneBudgetTest, LossesThatAreNotComparedNeedNoTime) {
    TuneBudget with(300, true), without(300, false);
    EXPECT_GT(with.reserve(), without.reserve());
}

// A machine gets busier while the search goes on.
TEST(TuneBudgetTest, ASearchThatGetsSlowerEndsEarlier) {
    TuneBudget budget(300, true);
    budget.see(took(1, 0.01));
    double before = budget.left_for_search(60);
    for (int i = 0; i < 3; ++i) budget.see(took(5, 0.01));
    EXPECT_LT(budget.left_for_search(60), before - 40);
}

TEST(TuneBudgetTest, FivePairsMayEndAQuarterLateAndFurtherOnesMayNot) {
    TuneBudget budget(100, false);
    budget.see(took(2, 0.01));
    EXPECT_TRUE(budget.has_time_for_proof_run(102));
    EXPECT_FALSE(budget.has_time_for_proof_run(124));
    EXPECT_LE(budget.most_for_run(90), 35);
    EXPECT_TRUE(budget.has_time_for_more(80));
    EXPECT_FALSE(budget.has_time_for_more(95));
}

// Search, guard and five pairs as a clock would see them, over many kinds of jobs.
// While there is nothing to prove, the proof's reserve need not end the search.
TEST(TuneBudgetTest, AProofMayEndLateForOneMoreTrial) {
    TuneBudget budget(180, false);
    budget.see(took(7, 0.04));
    double elapsed = 50;
    EXPECT_LE(budget.left_for_search(elapsed), 0);
    EXPECT_TRUE(budget.has_time_for_late_proof(elapsed));
    double most = 1.25 * 180 - 10 * budget.proof_run_seconds() - budget.trial_run_seconds();
    EXPECT_TRUE(budget.has_time_for_late_proof(most - 1));
    EXPECT_FALSE(budget.has_time_for_late_proof(most + 1));
}

TEST(TuneBudgetTest, FivePairsFitWhateverAStartAndAStepTake) {
    for (double start : {0.5, 2.0, 5.0}) {
        for (double step : {0.002, 0.1, 0.6}) {
            for (double seconds : {200.0, 300.0, 600.0}) {
                TuneBudget budget(seconds, true);
                double clock = 0;
                int trials = 0;
                while (budget.left_for_search(clock) > 0) {
                    double one = start * (trials % 3 == 0 ? 1.3 : 1) +
                                 std::max(budget.trial_seconds(), 5 * step);
                    clock += one;
                    TrialResult result = took(start * (trials % 3 == 0 ? 1.3 : 1), step);
                    budget.see(result);
                    ++trials;
                }
                EXPECT_GE(trials, 4) << start << " " << step << " " << seconds;
                for (int run = 0; run < 3; ++run) clock += start + budget.guard_seconds();
                int runs = 0;
                while (runs < 2 * kProofPairs && budget.has_time_for_proof_run(clock)) {
                    clock += start + budget.proof_seconds();
                    ++runs;
                }
                EXPECT_EQ(runs, 2 * kProofPairs) << start << " " << step << " " << seconds;
                EXPECT_LE(clock, seconds + 6);
            }
        }
    }
}

TEST(TuneBudgetTest, SaysABudgetThatWouldDo) {
    TuneBudget budget(60, true);
    budget.see(took(4, 0.5));
    EXPECT_EQ(budget.longer(), "7m");
}

}  // namespace
}  // namespace saturate
