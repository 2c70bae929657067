// SPDX-License-Identifier: Apache-2.0
#include "tuning/training_guard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace saturate {
namespace {

struct Made {
    double level = 2;     // of the losses at the start
    double noise = 0.05;  // from step to step
    int seed = 1;         // other numbers
    std::string totals = R"({"optimizer_steps": 40, "batches": 40, "skipped_batches": 0})";
};

RunRecord run_with(const Made& made) {
    RunRecord out;
    for (int i = 0; i < 40; ++i) {
        StepRecord step{.step = i, .start_ns = i * 1000, .duration_ns = 1000};
        step.samples = 32;
        double leap = std::sin(12.9898 * (i + 1) + 78.233 * made.seed) * 43758.5453;
        step.loss = made.level - 0.01 * i + made.noise * (leap - std::floor(leap) - 0.5);
        out.steps.push_back(step);
    }
    out.python = Json::parse("{\"totals\": " + made.totals + "}", "test");
    return out;
}

TrainingGuard guard_of(const Made& one, const Made& other) {
    TrainingGuard guard;
    guard.add_before(run_with(one));
    guard.add_before(run_with(other));
    return guard;
}

TEST(TrainingGuardTest, TheSameLossesPassAtEveryLevel) {
    TrainingGuard guard = guard_of({}, {});
    GuardAnswer answer = guard.judge(run_with({}), Level::safe);
    EXPECT_TRUE(answer.holds);
    EXPECT_EQ(answer.text, "the losses of the first 16 steps are the same");
}

TEST(TrainingGuardTest, FewerOptimizerStepsPerBatchAreNoGain) {
    TrainingGuard guard = guard_of({}, {});
    // `try/except: continue` around a step that raises.
    GuardAnswer answer = guard.judge(
        run_with({.totals = R"({"optimizer_steps": 0, "batches": 2, "skipped_batches": 400})"}),
        Level::safe);
    EXPECT_FALSE(answer.holds);
    EXPECT_EQ(answer.text, "0 optimizer steps per batch, 1 before");
}

TEST(TrainingGuardTest, ALossThatIsNoNumberIsNoGain) {
    TrainingGuard guard = guard_of({}, {});
    RunRecord broken = run_with({});
    broken.steps[30].loss = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(guard.judge(broken, Level::numerics).holds);
    EXPECT_FALSE(
        guard
            .judge(run_with({.totals = R"({"optimizer_steps": 4, "batches": 4, "not_finite": 2})"}),
                   Level::numerics)
            .holds);
}

TEST(TrainingGuardTest, OtherRandomNumbersPassAndAnotherCourseDoesNot) {
    TrainingGuard guard = guard_of({.seed = 1}, {.seed = 2});
    EXPECT_TRUE(guard.judge(run_with({.seed = 3}), Level::safe).holds);
    EXPECT_FALSE(guard.judge(run_with({.level = 3, .seed = 3}), Level::safe).holds);
    EXPECT_FALSE(guard.judge(run_with({.level = 3, .seed = 3}), Level::numerics).holds);
    // Better is another course, too, where nothing was to change but the time.
    EXPECT_FALSE(guard.judge(run_with({.level = 1, .seed = 3}), Level::safe).holds);
    EXPECT_TRUE(guard.judge(run_with({.level = 1, .seed = 3}), Level::training).holds);
}

TEST(TrainingGuardTest, WithoutLossesItSaysSo) {
    TrainingGuard guard;
    RunRecord silent = run_with({});
    for (StepRecord& step : silent.steps) step.loss.reset();
    guard.add_before(silent);
    GuardAnswer answer = guard.judge(silent, Level::safe);
    EXPECT_TRUE(answer.holds);
    EXPECT_EQ(answer.text, "the losses could not be compared: they were not seen in both runs");
}

}  // namespace
}  // namespace saturate
