// SPDX-License-Identifier: Apache-2.0
#include "tuning/training_guard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace saturate {
namespace {

constexpr GuardLevels kSafe{Level::safe, Level::safe};
constexpr GuardLevels kNumerics{Level::numerics, Level::numerics};
constexpr GuardLevels kTraining{Level::training, Level::training};

struct Made {
    double level = 2;     // of the losses at the start
    double noise = 0.05;  // from step to step
    int seed = 1;         // other numbers
    std::string totals = R"({"optimizer_steps": 40, "batches": 40, "skipped_batches": 0})";
    int parts_at = 40;  // the step from which on the numbers are others
};

RunRecord run_with(const Made& made) {
    RunRecord out;
    for (int i = 0; i < 40; ++i) {
        StepRecord step{.step = i, .start_ns = i * 1000, .duration_ns = 1000};
        step.samples = 32;
        double leap =
            std::sin(12.9898 * (i + 1) + 78.233 * (i < made.parts_at ? made.seed : made.seed + 7)) *
            43758.5453;
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
    GuardAnswer answer = guard.judge(run_with({}), kSafe);
    EXPECT_TRUE(answer.holds);
    EXPECT_EQ(answer.text, "the losses of the first 40 steps are the same");
}

TEST(TrainingGuardTest, FewerOptimizerStepsPerBatchAreNoGain) {
    TrainingGuard guard = guard_of({}, {});
    // `try/except: continue` around a step that raises.
    GuardAnswer answer = guard.judge(
        run_with({.totals = R"({"optimizer_steps": 0, "batches": 2, "skipped_batches": 400})"}),
        kSafe);
    EXPECT_FALSE(answer.holds);
    EXPECT_EQ(answer.text, "0 optimizer steps per batch, 1 before");
}

TEST(TrainingGuardTest, BatchesThatAShortRunHadNoTimeForAreNotLost) {
    std::string longer = R"({"optimizer_steps": 8, "batches": 10})";
    TrainingGuard guard = guard_of({.totals = longer}, {.totals = longer});
    EXPECT_TRUE(
        guard.judge(run_with({.totals = R"({"optimizer_steps": 3, "batches": 5})"}), kSafe).holds);
    EXPECT_FALSE(
        guard.judge(run_with({.totals = R"({"optimizer_steps": 12, "batches": 40})"}), kSafe)
            .holds);
}

// Of several runs without a seed one lies apart; together they do not.
TEST(TrainingGuardTest, RunsOfOneChangeAreJudgedTogether) {
    TrainingGuard guard = guard_of({.level = 2, .seed = 1}, {.level = 2.02, .seed = 2});
    RunRecord apart = run_with({.level = 2.2, .seed = 3});
    GuardAnswer alone = guard.judge(apart, kSafe);
    EXPECT_FALSE(alone.holds);
    EXPECT_TRUE(alone.is_by_course);
    std::vector<LossCurve> earlier;
    for (int seed = 4; seed < 10; ++seed)
        earlier.push_back(losses_of(run_with({.level = 1.99, .seed = seed})));
    EXPECT_TRUE(guard.judge(apart, kSafe, earlier).holds);
    for (LossCurve& curve : earlier)
        for (LossPoint& point : curve) point.loss += 0.2;
    EXPECT_FALSE(guard.judge(apart, kSafe, earlier).holds);
}

TEST(TrainingGuardTest, ALossThatIsNoNumberIsNoGain) {
    TrainingGuard guard = guard_of({}, {});
    RunRecord broken = run_with({});
    broken.steps[30].loss = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(guard.judge(broken, kNumerics).holds);
    EXPECT_FALSE(
        guard
            .judge(run_with({.totals = R"({"optimizer_steps": 4, "batches": 4, "not_finite": 2})"}),
                   kNumerics)
            .holds);
}

TEST(TrainingGuardTest, OtherRandomNumbersPassAndAnotherCourseDoesNot) {
    TrainingGuard guard = guard_of({.seed = 1}, {.seed = 2});
    EXPECT_TRUE(guard.judge(run_with({.seed = 3}), kSafe).holds);
    EXPECT_FALSE(guard.judge(run_with({.level = 3, .seed = 3}), kSafe).holds);
    EXPECT_FALSE(guard.judge(run_with({.level = 3, .seed = 3}), kNumerics).holds);
    // Better is another course, too, where nothing was to change but the time.
    EXPECT_FALSE(guard.judge(run_with({.level = 1, .seed = 3}), kSafe).holds);
    EXPECT_TRUE(guard.judge(run_with({.level = 1, .seed = 3}), kTraining).holds);
}

// Workers that stay over epochs: the first epoch is the same, the order of the second another.
TEST(TrainingGuardTest, OtherDrawsOfASeededScriptAreNotSafe) {
    TrainingGuard guard = guard_of({}, {});
    RunRecord parts = run_with({.parts_at = 24});
    GuardAnswer answer = guard.judge(parts, kSafe);
    EXPECT_FALSE(answer.holds);
    EXPECT_TRUE(answer.other_draws);
    EXPECT_EQ(answer.text,
              "the losses differ after 24 steps that are the same, as if random numbers came in "
              "another order (allowed with --level numerics)");
    answer = guard.judge(parts, {.of_change = Level::safe, .allowed = Level::numerics});
    EXPECT_TRUE(answer.holds);
    EXPECT_TRUE(answer.other_draws);
    // What is lost looks like other draws, too.
    answer = guard.judge(parts, {.of_change = Level::safe, .allowed = Level::numerics, .swallows_errors = true});
    EXPECT_FALSE(answer.holds);
    EXPECT_EQ(answer.text,
              "the losses differ after 24 steps that are the same, and the script goes on after "
              "any error: batches may be lost");
    // Another course is no matter of draws.
    RunRecord worse = run_with({.level = 3, .parts_at = 0});
    EXPECT_FALSE(guard.judge(worse, {.of_change = Level::safe, .allowed = Level::numerics}).holds);
}

// A script that goes on without the batches that fail in a worker.
TEST(TrainingGuardTest, AShorterEpochIsNoGain) {
    auto with_epochs_of = [](std::int64_t steps) {
        RunRecord out = run_with({});
        for (std::int64_t at = 0; at < 40; at += steps)
            out.events.push_back({.kind = EventKind::epoch, .step = at});
        return out;
    };
    TrainingGuard guard;
    guard.add_before(with_epochs_of(16));
    guard.add_before(with_epochs_of(16));
    EXPECT_TRUE(guard.judge(with_epochs_of(16), kNumerics).holds);
    EXPECT_EQ(guard.judge(with_epochs_of(9), kNumerics).text,
              "an epoch of 9 steps, 16 or more before");
    EXPECT_TRUE(guard.judge(with_epochs_of(9), kTraining).holds);  // a larger batch
}

// Sums in another order grow on a GPU: where two runs part at a step, a third may part earlier.
TEST(TrainingGuardTest, RunsThatPartByThemselvesAreComparedUpToThere) {
    TrainingGuard guard = guard_of({}, {.parts_at = 30});
    EXPECT_EQ(guard.judge(run_with({.parts_at = 20}), kSafe).text,
              "the losses of the first 15 steps are the same");
}

TEST(TrainingGuardTest, LossesOfADeviceStandBesideTheSteps) {
    RunRecord run = run_with({});
    for (StepRecord& step : run.steps) step.loss.reset();
    run.python = Json::parse(
        R"({"losses": {"first": [[0, 2.5], [1, 2.25], [2, 2.0]], "tail": [[39, null]]}})", "test");
    LossCurve losses = losses_of(run);
    ASSERT_EQ(losses.size(), 4u);
    EXPECT_EQ(losses[1].samples, 64);
    EXPECT_EQ(losses[1].loss, 2.25);
    EXPECT_TRUE(std::isnan(losses[3].loss));
    EXPECT_EQ(losses[3].samples, 40 * 32);
}

TEST(TrainingGuardTest, WithoutLossesItSaysSo) {
    TrainingGuard guard;
    RunRecord silent = run_with({});
    for (StepRecord& step : silent.steps) step.loss.reset();
    guard.add_before(silent);
    GuardAnswer answer = guard.judge(silent, kSafe);
    EXPECT_TRUE(answer.holds);
    EXPECT_EQ(answer.text, "the losses could not be compared: they were not seen in both runs");
}

}  // namespace
}  // namespace saturate
