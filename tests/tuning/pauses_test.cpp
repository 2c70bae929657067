// SPDX-License-Identifier: Apache-2.0
#include "tuning/pauses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saturate {
namespace {

EventRecord event(EventKind kind, double seconds, Json values = {}) {
    return {.kind = kind,
            .duration_ns = static_cast<std::int64_t>(seconds * 1e9),
            .values = std::move(values)};
}

// 1,000 samples at 100 samples/s: an epoch takes 10 s.
std::vector<LongerInterval> longer(const Assignment& settings, Pauses pauses) {
    return longer_intervals(settings, pauses, 100, 1000, 0.03);
}

TEST(PausesTest, TheShortestOfEachKindCountsAndTheWritersTimeDoesNot) {
    RunRecord record;
    record.events = {event(EventKind::evaluation, 3), event(EventKind::evaluation, 2),
                     event(EventKind::checkpoint, 0.02),
                     event(EventKind::checkpoint, 0.001, Json::object({{"path", "c"}}))};
    Pauses pauses = pauses_of(record);
    EXPECT_EQ(pauses.evaluation, 2.0);
    EXPECT_EQ(pauses.checkpoint, 0.02);
    EXPECT_EQ(pauses_text(pauses), "evaluation 2.0 s, checkpoint 20 ms");
}

TEST(PausesTest, AnEvaluationThatCostsASixthIsMadeRarer) {
    std::vector<LongerInterval> found = longer({{"epochs", "50"}}, {.evaluation = 2.0});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].key, "eval_interval");
    EXPECT_EQ(found[0].value, "10");
    EXPECT_EQ(found[0].reason,
              "2.0 s of evaluation after every 10 s of training: 17 % of the time");
    EXPECT_NEAR(found[0].ratio, 12.0 / 10.2, 1e-9);
    EXPECT_EQ(found[0].trade, "");
}

TEST(PausesTest, CheapPausesStayAsTheyAre) {
    EXPECT_THAT(longer({{"epochs", "50"}}, {.evaluation = 0.2, .checkpoint = 0.3}),
                testing::IsEmpty());
    EXPECT_THAT(longer({{"epochs", "50"}, {"eval_interval", "0"}}, {.evaluation = 9.0}),
                testing::IsEmpty());
    EXPECT_THAT(longer({{"epochs", "50"}}, {}), testing::IsEmpty());
}

TEST(PausesTest, AShortTrainingKeepsItsLastEvaluations) {
    std::vector<LongerInterval> found = longer({{"epochs", "9"}}, {.evaluation = 2.0});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].value, "3");
    EXPECT_THAT(longer({{"epochs", "5"}}, {.evaluation = 2.0}), testing::IsEmpty());
}

TEST(PausesTest, IntervalsInStepsAreOfSteps) {
    // A step of 50 samples takes half a second; ten of them 5 s.
    Assignment settings{{"batch_size", "25"},
                        {"gradient_accumulation_steps", "2"},
                        {"checkpoint_steps", "10"},
                        {"checkpoint_interval", "0"}};
    std::vector<LongerInterval> found = longer(settings, {.checkpoint = 0.5});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].key, "checkpoint_steps");
    EXPECT_EQ(found[0].value, "49");
    EXPECT_NEAR(found[0].ratio, 5.5 / (5 + 0.5 * 10 / 49), 1e-9);
}

TEST(PausesTest, EarlyStoppingMakesItATrade) {
    std::vector<LongerInterval> found =
        longer({{"epochs", "50"}, {"early_stopping", "5"}}, {.evaluation = 2.0});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].trade, "early_stopping is counted in evaluations");
}

}  // namespace
}  // namespace saturate
