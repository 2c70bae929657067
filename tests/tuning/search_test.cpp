// SPDX-License-Identifier: Apache-2.0
#include "tuning/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tuning/model_job.h"

namespace saturate {
namespace {

SearchAnswer searched(const ModelJob& job, Assignment start, Level level = Level::training) {
    SearchSettings settings{.start = start};
    settings.facts = {.cores = job.cores,
                      .on_cpu = false,
                      .has_bf16 = true,
                      .has_images = true,
                      .can_compile = false,
                      .memory_available_bytes = 0,
                      .level = level};
    settings.batch.max = 2048;
    return search(settings, [&](const TrialRequest& request) { return job.run(request, start); });
}

double best_of_grid(const ModelJob& job, const Assignment& start, int& size) {
    double best = 0;
    size = 0;
    for (int batch = 8; batch <= 2048; batch *= 2) {
        for (int workers : {0, 1, 2, 4, 6, 8, 12, 16}) {
            for (const char* precision : {"none", "bf16"}) {
                for (const char* layout : {"false", "true"}) {
                    Assignment s = start;
                    s["batch_size"] = std::to_string(batch);
                    s["num_workers"] = std::to_string(workers);
                    s["precision"] = precision;
                    s["channels_last"] = layout;
                    ++size;
                    if (job.memory_fixed + job.memory_per_sample * batch > 0.9 * job.memory_limit)
                        continue;
                    best = std::max(best, job.rate(s));
                }
            }
        }
    }
    return best;
}

Assignment plain_start() {
    return {{"batch_size", "32"},
            {"num_workers", "0"},
            {"precision", "none"},
            {"channels_last", "false"}};
}

double rate_found(const ModelJob& job, const SearchAnswer& answer, Assignment start) {
    for (const auto& [key, value] : answer.best) start[key] = value;
    return job.rate(start);
}

class SearchGridTest : public testing::TestWithParam<ModelJob> {};

// The knee asks for the smallest batch within 2 % of the best, so 3 % of the grid's best is the
// most that the answer may lose by design.
TEST_P(SearchGridTest, ComesCloseToTheBestOfTheGridForAFractionOfItsCost) {
    const ModelJob& job = GetParam();
    int grid = 0;
    double best = best_of_grid(job, plain_start(), grid);
    SearchAnswer answer = searched(job, plain_start());
    EXPECT_GE(rate_found(job, answer, plain_start()), 0.97 * best) << to_json(answer).pretty();
    EXPECT_LE(job.trials, grid / 5);
}

INSTANTIATE_TEST_SUITE_P(Jobs, SearchGridTest,
                         testing::Values(ModelJob{}, ModelJob{.fetch = 0.0},
                                         ModelJob{.fetch = 0.02, .cores = 4},
                                         ModelJob{.bf16_factor = 4.0, .channels_last_factor = 1.2},
                                         ModelJob{.curve = 2.0},
                                         ModelJob{.memory_per_sample = 200e6}));

TEST(SearchTest, LeavesAWellFedJobAlone) {
    ModelJob job{.fetch = 0.0001, .bf16_factor = 1.3, .channels_last_factor = 1.1};
    Assignment start = plain_start();
    start["num_workers"] = "2";
    start["batch_size"] = "1024";
    job.memory_per_sample = 12e6;
    SearchAnswer answer = searched(job, start);
    EXPECT_THAT(answer.best, testing::IsEmpty()) << to_json(answer).pretty();
    EXPECT_EQ(answer.ended, "no cause above 3 % is left");
}

// Settings without any effect, on a machine whose runs differ by a twentieth.
TEST(SearchTest, NoiseIsHardlyEverKept) {
    int kept = 0, tried = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        ModelJob job{.fetch = 0, .bf16_factor = 1, .channels_last_factor = 1, .noise = 0.05};
        job.random.seed(seed);
        SearchAnswer answer = searched(job, plain_start(), Level::numerics);
        for (const Tried& t : answer.trials) {
            if (t.change.empty()) continue;
            ++tried;
            kept += t.kept;
        }
    }
    EXPECT_GE(tried, 400);
    EXPECT_LT(kept, tried / 10) << kept << " of " << tried;
}

TEST(SearchTest, StaysWithinItsLevel) {
    SearchAnswer answer = searched(ModelJob{}, plain_start(), Level::safe);
    for (const auto& [key, value] : answer.best)
        EXPECT_EQ(find_setting(key)->level, Level::safe) << key;
    EXPECT_FALSE(answer.batch.has_value());
}

TEST(SearchTest, WhatTheConfigurationTurnedOffIsTried) {
    Assignment start = plain_start();
    for (const char* key :
         {"set_to_none", "cudnn_benchmark", "fused_optimizer", "persistent_workers"})
        start[key] = "false";
    start["gradient_checkpointing"] = "true";
    std::set<std::string> tried;
    SearchAnswer answer = searched(ModelJob{}, start);
    for (const Tried& t : answer.trials)
        for (const auto& [key, value] : t.change) tried.insert(key + "=" + value);
    EXPECT_THAT(tried, testing::IsSupersetOf({"set_to_none=true", "cudnn_benchmark=true",
                                              "fused_optimizer=true", "persistent_workers=true",
                                              "gradient_checkpointing=false"}));
}

TEST(SearchTest, ALargerMicroBatchKeepsTheEffectiveBatch) {
    Assignment start = plain_start();
    start["gradient_accumulation_steps"] = "8";  // of 32
    SearchAnswer answer = searched(ModelJob{.fetch = 0}, start, Level::numerics);
    ASSERT_TRUE(answer.best.contains("batch_size")) << to_json(answer).pretty();
    auto size = *parse_integer(answer.best["batch_size"]);
    auto steps = *parse_integer(answer.best["gradient_accumulation_steps"]);
    EXPECT_GT(size, 32);
    EXPECT_EQ(size * steps, 256);
}

TEST(SearchTest, FewerWorkersWhereThereAreTooMany) {
    ModelJob job{.fetch = 0.0005};
    Assignment start = plain_start();
    start["num_workers"] = "32";
    SearchAnswer answer = searched(job, start, Level::safe);
    ASSERT_TRUE(answer.best.contains("num_workers")) << to_json(answer).pretty();
    EXPECT_LE(*parse_integer(answer.best["num_workers"]), 8);
}

TEST(SearchTest, AFailingBaselineIsSaidAndNothingElseIsTried) {
    ModelJob job{.memory_limit = 1e8};
    SearchAnswer answer = searched(job, plain_start());
    EXPECT_EQ(answer.ended, "the configuration itself does not run: out of memory");
    EXPECT_EQ(answer.trials.size(), 1u);
    EXPECT_FALSE(answer.baseline.has_value());
}

TEST(SearchTest, TheBestSoFarIsThereWhenItIsStopped) {
    ModelJob job;
    Assignment start = plain_start();
    SearchSettings settings{.start = start};
    settings.facts = {.cores = 8, .on_cpu = false, .has_bf16 = true};
    settings.is_stopped = [&] { return job.trials >= 3; };
    SearchAnswer answer =
        search(settings, [&](const TrialRequest& request) { return job.run(request, start); });
    EXPECT_EQ(answer.ended, "stopped; this is the best so far");
    EXPECT_TRUE(answer.best.contains("num_workers"));
    EXPECT_GT(answer.best_rate->per_second, 2 * answer.baseline->per_second);
}

TEST(SearchTest, EndsWhenItsTimeIsUpAndGivesNoTrialMoreThanMostOfIt) {
    ModelJob job;
    Assignment start = plain_start();
    SearchSettings settings{.start = start};
    settings.facts = {.cores = 8, .on_cpu = false, .has_bf16 = true};
    double left = 40;
    settings.seconds_left = [&] { return left; };
    std::vector<double> most;
    SearchAnswer answer = search(settings, [&](const TrialRequest& request) {
        most.push_back(request.seconds_max);
        left -= 8;
        return job.run(request, start);
    });
    EXPECT_EQ(answer.ended, "the time budget is used up");
    ASSERT_EQ(most.size(), 5u);
    EXPECT_DOUBLE_EQ(most[0], 36) << "without a baseline there is nothing else to do";
    EXPECT_DOUBLE_EQ(most[1], 20) << "the least that a trial is given";
}

TEST(SearchTest, OnlyWhatTheCommandTakesIsTried) {
    ModelJob job;
    Assignment start = plain_start();
    SearchSettings settings{.start = start};
    settings.facts = {.cores = 8, .on_cpu = false, .has_bf16 = true, .can_compile = false};
    settings.tunable = {"batch_size"};
    settings.batch.max = 512;
    SearchAnswer answer =
        search(settings, [&](const TrialRequest& request) { return job.run(request, start); });
    for (const Tried& tried : answer.trials) {
        for (const auto& [key, value] : tried.change) EXPECT_EQ(key, "batch_size");
    }
    EXPECT_TRUE(answer.batch.has_value());
}

TEST(SearchTest, ACloseCallIsMeasuredAnewAndNotRead) {
    ModelJob job{.fetch = 0, .bf16_factor = 0.97, .channels_last_factor = 1.0};
    Assignment start = plain_start();
    SearchSettings settings{.start = start};
    settings.facts = {.cores = 8, .on_cpu = false, .has_bf16 = true, .can_compile = false};
    settings.tune_batch = false;
    int again = 0;
    (void)search(settings, [&](const TrialRequest& request) {
        again += request.again ? 1 : 0;
        return job.run(request, start);
    });
    EXPECT_GE(again, 2);
}

// What repetition alone can tell waits until what is plain is in force.
TEST(SearchTest, ACloseCallIsDecidedAfterWhatIsPlain) {
    ModelJob job{.fetch = 0, .bf16_factor = 0.95, .channels_last_factor = 0.7, .noise = 0.001};
    std::vector<std::string> seen;
    for (const Tried& tried : searched(job, plain_start()).trials) {
        if (tried.cause != "precision" && tried.cause != "channels_last") continue;
        seen.push_back(tried.cause + (tried.kept ? " kept" : tried.open ? " open" : " refused"));
    }
    EXPECT_THAT(seen,
                testing::ElementsAre("precision open", "channels_last kept", "precision kept"));
}

// From the second trial on everything takes a third longer: the layout, though a gain, looks slower
// than the job as it was.
TEST(SearchTest, AMachineThatSlowsDownHidesNoGainOnACpu) {
    ModelJob job{.fetch = 0, .channels_last_factor = 0.7, .noise = 0.001};
    Assignment start = plain_start();
    SearchSettings settings{.start = start};
    settings.facts = {.cores = 8, .on_cpu = true, .has_images = true, .can_compile = false};
    settings.tune_batch = false;
    int trials = 0;
    SearchAnswer answer = search(settings, [&](const TrialRequest& request) {
        TrialResult result = job.run(request, start);
        Rate& rate = *result.samples_per_second;
        for (double* value : {&rate.per_second, &rate.low, &rate.high})
            *value *= trials > 0 ? 0.75 : 1;
        ++trials;
        return result;
    });
    EXPECT_EQ(value_of(answer.best, "channels_last"), "true");
}

std::vector<std::string> causes_of(const SearchAnswer& answer) {
    std::vector<std::string> out;
    for (const Tried& tried : answer.trials) out.push_back(tried.cause);
    return out;
}

// A simulated device tells exactly how busy it is.
SearchAnswer searched_with_busy(double busy, double log_share = 0) {
    ModelJob job{.fetch = 0, .bf16_factor = 1, .channels_last_factor = 1};
    Assignment start = plain_start();
    start["pin_memory"] = "false";
    start["log_interval"] = "1";
    SearchSettings settings{.start = start};
    settings.facts = {
        .cores = 8, .on_cpu = false, .has_bf16 = true, .has_images = true, .busy_is_exact = true};
    settings.tune_batch = false;
    return search(settings, [&](const TrialRequest& request) {
        TrialResult result = job.run(request, start);
        result.samples_per_second->device_busy_share = busy;
        result.samples_per_second->log_share = log_share;
        result.samples_per_second->copy_share = 0.1;
        return result;
    });
}

TEST(SearchTest, ABusyDeviceIsNotHelpedByAQuickerHost) {
    std::vector<std::string> causes = causes_of(searched_with_busy(0.99));
    EXPECT_THAT(causes, testing::Contains("precision"));
    EXPECT_THAT(causes, testing::Not(testing::Contains("copy")));
    EXPECT_THAT(causes, testing::Not(testing::Contains("compile")));
}

TEST(SearchTest, ADeviceThatWaitsIsNotMadeFaster) {
    std::vector<std::string> causes = causes_of(searched_with_busy(0.3));
    EXPECT_THAT(causes, testing::Contains("copy"));
    EXPECT_THAT(causes, testing::Contains("compile"));
    EXPECT_THAT(causes, testing::Not(testing::Contains("precision")));
    EXPECT_THAT(causes, testing::Not(testing::Contains("reading the loss")))
        << "readings that take no time are left alone";
}

TEST(SearchTest, HostAndDeviceThatTakeTurnsAreBothTried) {
    std::vector<std::string> causes = causes_of(searched_with_busy(0.6, 0.3));
    EXPECT_THAT(causes, testing::IsSupersetOf({"reading the loss", "precision", "channels_last"}));
}

TEST(SearchTest, ACandidateFarBelowIsAllowedToEndEarly) {
    ModelJob job;
    Assignment start = plain_start();
    SearchSettings settings{.start = start};
    settings.facts = {.cores = 8, .on_cpu = false, .has_bf16 = true, .can_compile = false};
    settings.tune_batch = false;
    std::vector<TrialRequest> requests;
    SearchAnswer answer = search(settings, [&](const TrialRequest& request) {
        requests.push_back(request);
        return job.run(request, start);
    });
    ASSERT_GE(requests.size(), 3u);
    EXPECT_EQ(requests[0].hopeless_below, 0);
    EXPECT_EQ(requests[1].hopeless_below, 0) << "the bound is no candidate";
    EXPECT_NEAR(requests[2].hopeless_below, 0.9 * answer.baseline->per_second, 1e-9);
}

// 32 of 1,000 samples: an epoch takes as long as its steps, and the evaluation as said.
SearchAnswer searched_with_pauses(double evaluation_seconds, const std::string& early_stopping) {
    ModelJob job{.fetch = 0, .bf16_factor = 1, .channels_last_factor = 1, .noise = 0};
    Assignment start = plain_start();
    start["epochs"] = "60";
    start["early_stopping"] = early_stopping;
    SearchSettings settings{.start = start, .tune_batch = false, .can_measure_pauses = true};
    settings.facts = {.cores = 8, .on_cpu = false, .can_compile = false};
    return search(settings, [&](const TrialRequest& request) {
        TrialResult result = job.run(request, start);
        result.samples_per_epoch = 1000;
        if (!request.with_pauses) return result;
        EXPECT_TRUE(request.again);
        result.record.events = {
            {.kind = EventKind::evaluation,
             .duration_ns = static_cast<std::int64_t>(evaluation_seconds * 1e9)}};
        return result;
    });
}

TEST(SearchTest, AnEvaluationThatTakesLongIsMadeRarer) {
    // An epoch of 1,000 samples at 32 / 10.4 ms takes 0.325 s.
    SearchAnswer answer = searched_with_pauses(0.065, "0");
    EXPECT_EQ(answer.best["eval_interval"], "10") << to_json(answer).pretty();
    const Tried& last = answer.trials.back();
    EXPECT_EQ(last.cause, "evaluation");
    EXPECT_EQ(last.reason, "65 ms of evaluation after every 0.3 s of training: 17 % of the time");
    EXPECT_NEAR(last.ratio, (0.325 + 0.065) / (0.325 + 0.0065), 1e-6);
    EXPECT_EQ(answer.trials[answer.trials.size() - 2].message, "evaluation 65 ms");
    EXPECT_THAT(searched_with_pauses(0.005, "0").best, testing::IsEmpty());
}

TEST(SearchTest, AnIntervalThatEarlyStoppingCountsIsShownAsATrade) {
    SearchAnswer answer = searched_with_pauses(0.065, "5");
    EXPECT_THAT(answer.best, testing::IsEmpty());
    EXPECT_THAT(answer.notes,
                testing::ElementsAre(
                    "eval_interval=10 would give +18 % over whole epochs (65 ms of evaluation "
                    "after every 0.3 s of training: 17 % of the time); a trade-off for you to "
                    "decide: early_stopping is counted in evaluations"));
}

TEST(SearchTest, TheCompilerComesLastOnACpuAndOnlyWithTime) {
    ModelJob job;
    Assignment start = plain_start();
    SearchSettings settings{.start = start};
    settings.facts = {.cores = 2, .on_cpu = true};
    auto run = [&](const TrialRequest& request) { return job.run(request, start); };
    SearchAnswer answer = search(settings, run);
    EXPECT_EQ(answer.trials.back().cause, "compile");
    settings.seconds_left = [] { return 30.0; };
    answer = search(settings, run);
    EXPECT_NE(answer.trials.back().cause, "compile");
    EXPECT_THAT(answer.notes, testing::Contains("compile was not tried: building its graph takes "
                                                "about a minute, and the search had 30 s left; a "
                                                "longer --budget tries it"));
}

TEST(SearchTest, ASettingThatChangedTwiceIsOneRow) {
    SearchAnswer answer;
    answer.best = {{"batch_size", "64"}, {"learning_rate", "0.1"}, {"num_workers", "4"}};
    auto tried = [](Assignment change, double ratio) {
        return Tried{.reason = "r",
                     .change = change,
                     .rate = Rate{.per_second = 7},
                     .ratio = ratio,
                     .kept = true};
    };
    answer.trials = {tried({{"num_workers", "2"}, {"prefetch_factor", "2"}}, 1.5),
                     tried({{"num_workers", "4"}}, 1.2), tried({{"batch_size", "64"}}, 1.1)};
    std::vector<KeptSetting> kept = kept_settings(answer);
    ASSERT_EQ(kept.size(), 3u);
    EXPECT_EQ(kept[0].key, "batch_size");
    EXPECT_EQ(kept[1].with, "batch_size");
    EXPECT_FALSE(kept[1].ratio.has_value());
    EXPECT_EQ(kept[2].value, "4");
    EXPECT_NEAR(*kept[2].ratio, 1.8, 1e-9);
}

TEST(SearchTest, TheBoundIsNeverBelowTheBaseline) {
    ModelJob job{.fetch = 0};
    Assignment start = plain_start();
    start["num_workers"] = "4";
    SearchSettings settings{.start = start};
    settings.facts = {.cores = 8, .on_cpu = false, .level = Level::safe};
    SearchAnswer answer = search(settings, [&](const TrialRequest& request) {
        TrialResult result = job.run(request, start);
        // Something else took half of the machine just then.
        if (request.without_loader) result.samples_per_second->per_second *= 0.5;
        return result;
    });
    ASSERT_TRUE(answer.upper_bound && answer.baseline);
    EXPECT_GE(*answer.upper_bound, answer.baseline->per_second);
    EXPECT_THAT(answer.notes,
                testing::Contains(testing::HasSubstr("something else is using this")));
}

}  // namespace
}  // namespace saturate
