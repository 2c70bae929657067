// SPDX-License-Identifier: Apache-2.0
#include "tuning/in_force.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

RunRecord with(const char* python, std::int64_t samples = 32) {
    RunRecord record;
    record.python = Json::parse(python, "python.json");
    for (int i = 0; i < 5; ++i) record.steps.push_back({.step = i, .samples = samples});
    return record;
}

constexpr const char* kEightWorkers =
    R"({"loaders":[{"id":0,"num_workers":8,"batch_size":32,"persistent_workers":false}],)"
    R"("steps_by_loader":[{"loader":0,"steps":5}],"changes":[],"flags":{"threads":2}})";

TEST(InForceTest, WorkersThatStayedAreNotCredited) {
    RunRecord record = with(kEightWorkers);
    EXPECT_EQ(not_in_force({{"num_workers", "4"}}, record), "num_workers=4: the script has 8");
    EXPECT_FALSE(not_in_force({{"num_workers", "8"}}, record));
    EXPECT_FALSE(not_in_force({}, record));
}

TEST(InForceTest, ABatchSizeThatTheStepsDoNotHaveIsNotInForce) {
    RunRecord record = with(kEightWorkers);
    EXPECT_EQ(not_in_force({{"batch_size", "1024"}}, record), "batch_size=1024: the script has 32");
    EXPECT_FALSE(not_in_force({{"batch_size", "32"}}, record));
    // A loader of ready-made batches: the tensors tell.
    EXPECT_FALSE(not_in_force({{"batch_size", "64"}}, with(kEightWorkers, 64)));
}

TEST(InForceTest, AStepShowsHowManyBatchesItAddsUp) {
    EXPECT_FALSE(not_in_force({{"gradient_accumulation_steps", "1"}}, with(kEightWorkers)));
    EXPECT_FALSE(not_in_force({{"gradient_accumulation_steps", "4"}}, with(kEightWorkers, 128)));
    EXPECT_EQ(not_in_force({{"gradient_accumulation_steps", "2"}}, with(kEightWorkers)),
              "gradient_accumulation_steps=2: the script has 1");
}

TEST(InForceTest, WhatTheShimAppliedIsInForceAndWhatItRefusedIsNot) {
    RunRecord record = with(
        R"({"changes":[{"name":"num_workers","state":"applied","text":"2 workers","value":2},)"
        R"({"name":"persistent_workers","state":"refused","text":"iterated twice","value":null},)"
        R"({"name":"autocast","state":"applied","text":"bf16","value":null},)"
        R"({"name":"channels_last","state":"applied","text":"","value":null},)"
        R"({"name":"channels_last","state":"taken back","text":"it raised","value":null}]})");
    EXPECT_FALSE(not_in_force({{"num_workers", "2"}, {"precision", "bf16"}}, record));
    EXPECT_EQ(not_in_force({{"num_workers", "3"}}, record), "num_workers=3: the script has 2");
    EXPECT_EQ(not_in_force({{"persistent_workers", "true"}}, record),
              "persistent_workers=true: refused: iterated twice");
    EXPECT_EQ(not_in_force({{"channels_last", "true"}}, record),
              "channels_last=true: taken back: it raised");
}

TEST(InForceTest, WhatTheRecordDoesNotShowIsNotInForce) {
    EXPECT_EQ(not_in_force({{"compile", "true"}}, with(kEightWorkers)),
              "compile=true: the record does not show it");
    EXPECT_EQ(not_in_force({{"precision", "bf16"}}, with(kEightWorkers)),
              "precision=bf16: the script has none");
    EXPECT_FALSE(not_in_force({{"learning_rate", "0.2"}}, with(kEightWorkers)));
    EXPECT_EQ(not_in_force({{"num_workers", "2"}}, RunRecord{}),
              "num_workers=2: the record does not show it");
}

}  // namespace
}  // namespace saturate
