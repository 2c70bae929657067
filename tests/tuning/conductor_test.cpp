// SPDX-License-Identifier: Apache-2.0
// The whole search, loss guard and proof, without a process and by a clock on paper.
#include "tuning/conductor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tuning/model_job.h"
#include "tuning/proven.h"

namespace saturate {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

struct PaperWorld {
    ModelJob job;
    TuneRequest request;
    double start_seconds = 1;
    double clock = 0;
    double stop_at = 1e9;  // Ctrl-C
    bool loses_losses = false;
    bool is_even_in_proof = false;  // what the search saw was chance
    std::string busy;
    std::string optimizer;        // that a script was seen to have
    bool tells_in_proof = false;  // its losses
    bool learns_worse = false;    // with other settings

    explicit PaperWorld(double budget_seconds) {
        request.job.config = "job.yaml";
        request.device = "cpu";
        request.start = {{"batch_size", "32"},  {"num_workers", "0"},
                         {"precision", "none"}, {"channels_last", "false"},
                         {"optimizer", "sgd"},  {"learning_rate", "0.1"}};
        request.facts = {.cores = job.cores,
                         .on_cpu = false,
                         .has_bf16 = true,
                         .has_images = true,
                         .can_compile = false,
                         .level = Level::training};
        request.batch.max = 2048;
        request.budget_seconds = budget_seconds;
    }

    TrialResult run(const TrialRequest& wanted, std::string_view stage) {
        TrialRequest asked = wanted;
        if (stage == "proof" && is_even_in_proof) asked.settings.clear();
        TrialResult result = job.run(asked, request.start);
        if (!result.samples_per_second) {
            clock += start_seconds;
            return result;
        }
        Rate& rate = *result.samples_per_second;
        double steps = wanted.steps > 0 ? static_cast<double>(wanted.steps)
                                        : std::max(4.0, wanted.seconds / rate.step_seconds);
        steps =
            std::min(steps, std::max(0.0, wanted.seconds_max - start_seconds) / rate.step_seconds);
        rate.steps = static_cast<std::int64_t>(steps);
        result.seconds = start_seconds + static_cast<double>(rate.steps) * rate.step_seconds;
        clock += result.seconds;
        if (!optimizer.empty())
            result.record.python =
                Json::parse(R"({"optimizers": [{"type": ")" + optimizer + R"("}]})", "python.json");
        bool is_worse = !wanted.settings.empty() && learns_worse;
        bool is_told = stage == "loss" || (stage == "proof" && tells_in_proof);
        if (is_told && !loses_losses) {
            auto samples =
                static_cast<std::int64_t>(std::lround(rate.per_second * rate.step_seconds));
            for (std::int64_t i = 0; i < rate.steps; ++i) {
                result.record.steps.push_back({.step = i, .samples = samples});
                result.record.steps.back().loss =
                    (is_worse ? 3 : 1) / (1 + 0.001 * static_cast<double>((i + 1) * samples));
            }
        }
        return result;
    }

    TuneAnswer conduct() {
        TuneWorld world{.run = [this](const TrialRequest& wanted,
                                      std::string_view stage) { return run(wanted, stage); },
                        .seconds = [this] { return clock; },
                        .is_stopped = [this] { return clock >= stop_at; },
                        .busy = [this] { return busy; },
                        .on_trial = [](int, const Tried&) {},
                        .on_line = [](const std::string&) {}};
        return saturate::conduct(request, world);
    }
};

TEST(ConductorTest, EndsInAProofWithinItsBudgetWhateverAStartTakes) {
    for (double start : {0.3, 1.0, 3.0, 6.0}) {
        for (double budget : {180.0, 300.0, 600.0}) {
            PaperWorld world(budget);
            world.start_seconds = start;
            TuneAnswer answer = world.conduct();
            ASSERT_TRUE(answer.proof) << start << " " << budget;
            EXPECT_EQ(answer.proof->verdict, Verdict::faster) << start << " " << budget;
            EXPECT_GE(answer.proof->pairs.size(), 5u) << start << " " << budget;
            EXPECT_EQ(answer.guard->verdict, GuardVerdict::holds) << start << " " << budget;
            EXPECT_LE(world.clock, budget + 6) << start;
            EXPECT_EQ(proven_settings(world.request, answer).settings, answer.search.best);
        }
    }
}

// Runs that differ by a tenth, as beside a process that keeps a core busy.
TEST(ConductorTest, ProvesATwofoldGainOnANoisyMachine) {
    int proven = 0;
    for (unsigned seed = 0; seed < 20; ++seed) {
        PaperWorld world(300);
        world.start_seconds = 4;
        world.job.noise = 0.1;
        world.job.random.seed(seed);
        TuneAnswer answer = world.conduct();
        proven += answer.proof && answer.proof->verdict == Verdict::faster;
        EXPECT_LE(world.clock, 306);
    }
    EXPECT_GE(proven, 19);
}

TEST(ConductorTest, TimeThatIsLeftForAProofIsNotCalledUsedUp) {
    PaperWorld world(40);
    world.start_seconds = 8;
    TuneAnswer answer = world.conduct();
    EXPECT_FALSE(answer.proof);
    EXPECT_LT(world.clock, 20);
    EXPECT_THAT(answer.search.notes,
                Contains("not everything was tried: one more trial would leave no time for its "
                         "proof; --budget 8m tries more"));
}

TEST(ConductorTest, ABudgetThatIsTooSmallProvesNothingAndNamesALongerOne) {
    PaperWorld world(80);
    world.start_seconds = 6;
    TuneAnswer answer = world.conduct();
    ASSERT_TRUE(answer.proof);
    EXPECT_EQ(answer.proof->verdict, Verdict::not_proven);
    EXPECT_FALSE(answer.proof->longer.empty());
    ProvenSettings proven = proven_settings(world.request, answer);
    EXPECT_THAT(proven.settings, IsEmpty());
    EXPECT_FALSE(proven.rest.empty());
    EXPECT_LE(world.clock, 1.25 * 80 + 1);  // a proof may end a quarter late
}

// Batch 32 became 1664 and the learning rate 7.2 times as much, with status 0.
TEST(ConductorTest, NothingIsProvenOfASearchThatWasInterrupted) {
    PaperWorld world(300);
    world.stop_at = 60;
    TuneAnswer answer = world.conduct();
    EXPECT_TRUE(answer.interrupted);
    EXPECT_FALSE(answer.search.best.empty());
    ProvenSettings proven = proven_settings(world.request, answer);
    EXPECT_THAT(proven.settings, IsEmpty());
    EXPECT_EQ(proven.rest.size(), answer.search.best.size());
    EXPECT_EQ(proven.why, "interrupted before the proof");
}

TEST(ConductorTest, NothingIsProvenWhereTheProofSeesNoDifference) {
    PaperWorld world(300);
    world.is_even_in_proof = true;
    TuneAnswer answer = world.conduct();
    ASSERT_TRUE(answer.proof);
    EXPECT_EQ(answer.proof->verdict, Verdict::no_difference);
    ProvenSettings proven = proven_settings(world.request, answer);
    EXPECT_THAT(proven.settings, IsEmpty());
    EXPECT_EQ(proven.why, "the proof shows no difference");
}

TEST(ConductorTest, WhatMayMoveTheLossIsNotProvenWithoutAComparisonOfLosses) {
    PaperWorld world(300);
    world.loses_losses = true;
    TuneAnswer answer = world.conduct();
    ASSERT_TRUE(answer.proof);
    EXPECT_EQ(answer.proof->verdict, Verdict::faster);
    ProvenSettings proven = proven_settings(world.request, answer);
    EXPECT_THAT(proven.settings, IsEmpty());
    EXPECT_THAT(proven.why, HasSubstr("could not be compared"));
}

TEST(ConductorTest, IntervalsBetweenPausesAreNoPartOfTheProof) {
    TuneAnswer answer;
    answer.search.best = {{"num_workers", "2"}, {"eval_interval", "5"}};
    answer.proof = Proof{.verdict = Verdict::faster};
    TuneRequest request;
    request.job.config = "job.yaml";
    ProvenSettings proven = proven_settings(request, answer);
    EXPECT_EQ(proven.settings, (Assignment{{"num_workers", "2"}}));
    ASSERT_EQ(proven.rest.size(), 1u);
    EXPECT_EQ(proven.rest[0].key, "eval_interval");
}

TEST(ConductorTest, SaysThatTheMachineIsBusy) {
    PaperWorld world(300);
    world.busy = "other work uses 1.0 of the 2 cores";
    EXPECT_EQ(world.conduct().search.notes.at(0), world.busy);
}

TEST(ConductorTest, SaysWhatACommandGivesNoWayToChange) {
    PaperWorld world(300);
    world.request.job = {.config = "", .command = {"python", "train.py"}};
    TuneAnswer answer = world.conduct();
    EXPECT_THAT(answer.search.unreachable, Contains("batch_size"));
    EXPECT_THAT(answer.search.notes, Contains(HasSubstr("saturate fix -- python train.py")));
}

TEST(ConductorTest, OfAFileOnlyItsOwnKeysAreTried) {
    PaperWorld world(300);
    world.request.file.emplace("batch_size: 32\nnum_workers: 0\n", "c.yaml");
    world.request.job = {.config = "c.yaml", .command = {"python", "main.py", "{config}"}};
    TuneAnswer answer = world.conduct();
    for (const auto& [key, value] : answer.search.best)
        EXPECT_TRUE(key == "batch_size" || key == "num_workers" || key == "learning_rate") << key;
    EXPECT_THAT(answer.search.notes, Contains(HasSubstr("c.yaml has no key for")));
    EXPECT_TRUE(answer.search.best.contains("num_workers"))
        << "though persistent_workers, which goes along, has no key";
}

TEST(ConductorTest, TheLearningRateOfAFileFollowsTheOptimizerThatTheScriptWasSeenToHave) {
    PaperWorld world(300);
    world.request.start.erase("optimizer");
    world.request.start["num_workers"] = "8";
    world.optimizer = "AdamW";
    world.request.file.emplace("batch_size: 32\nlearning_rate: 0.1\nnum_workers: 8\n", "c.yaml");
    world.request.job = {.config = "c.yaml", .command = {"python", "main.py", "{config}"}};
    TuneAnswer answer = world.conduct();
    ASSERT_TRUE(answer.search.best.contains("batch_size"));
    double ratio = std::stod(answer.search.best.at("batch_size")) / 32;
    ASSERT_TRUE(answer.search.best.contains("learning_rate"));
    EXPECT_NEAR(std::stod(answer.search.best.at("learning_rate")), 0.1 * std::sqrt(ratio), 0.005);

    // Without a key for it, it stays, and that is said.
    PaperWorld without(300);
    without.request.start = {{"batch_size", "32"}, {"num_workers", "8"}};
    without.optimizer = "AdamW";
    without.request.file.emplace("batch_size: 32\nnum_workers: 8\n", "c.yaml");
    without.request.job = world.request.job;
    answer = without.conduct();
    ASSERT_TRUE(answer.search.best.contains("batch_size"));
    EXPECT_FALSE(answer.search.best.contains("learning_rate"));
    EXPECT_THAT(answer.search.notes, Contains(HasSubstr("the learning rate stays the same")));
}

TEST(ConductorTest, ACommandThatLearnsWorseIsNotProven) {
    for (bool is_worse : {false, true}) {
        PaperWorld world(300);
        world.request.start["num_workers"] = "8";
        world.request.file.emplace("batch_size: 32\nlearning_rate: 0.1\nnum_workers: 8\n",
                                   "c.yaml");
        world.request.job = {.config = "c.yaml", .command = {"python", "main.py", "{config}"}};
        world.tells_in_proof = true;
        world.learns_worse = is_worse;
        TuneAnswer answer = world.conduct();
        ASSERT_TRUE(answer.search.best.contains("batch_size"));
        ASSERT_TRUE(answer.proof);
        ASSERT_TRUE(answer.guard);
        ProvenSettings proven = proven_settings(world.request, answer);
        EXPECT_EQ(proven.settings.empty(), is_worse) << answer.guard->text;
        EXPECT_EQ(proven.why.find("worse than chance explains") != std::string::npos, is_worse);
    }
}

}  // namespace
}  // namespace saturate
