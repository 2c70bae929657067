// SPDX-License-Identifier: Apache-2.0
#include "report/fix_run_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saturate {
namespace {

using testing::HasSubstr;

TEST(FixRunTextTest, AJobThatFailsIsToldInItsOwnWords) {
    TrialResult job{.outcome = TrialOutcome::failed, .message = "ValueError: no data"};
    EXPECT_EQ(fix_failure_text(job, "loading\n\nsaturate: watched\nValueError: no data\n"),
              "Your job fails as it is: ValueError: no data; its last lines:\n"
              "    loading\n"
              "    ValueError: no data\n");
}

TEST(FixRunTextTest, AJobThatEndsEarlyDidNotFail) {
    TrialResult job{.outcome = TrialOutcome::failed,
                    .message = "it ended after 0 steps: too few to measure"};
    std::string none = fix_failure_text(job, "");
    EXPECT_THAT(none, HasSubstr("Your job ended, and no training step of PyTorch was seen; it "
                                "printed nothing\n"));
    EXPECT_THAT(none, HasSubstr("fix: name the script that trains"));
    job.record.steps.resize(1);
    std::string one = fix_failure_text(job, "epoch 1\n");
    EXPECT_THAT(one, HasSubstr("Your job ended after 1 training step: too few to measure; its last "
                               "lines:\n    epoch 1\n"));
    EXPECT_THAT(one, HasSubstr("fix: a trial needs some seconds of training"));
}

TEST(FixRunTextTest, WhatToDoFollowsFromWhatTheScriptSays) {
    TrialResult job{.outcome = TrialOutcome::failed, .message = "error"};
    EXPECT_THAT(fix_failure_text(job, "ModuleNotFoundError: No module named 'torch'"),
                HasSubstr("fix: this Python has no PyTorch"));
    EXPECT_THAT(fix_failure_text(job, "ModuleNotFoundError: No module named 'models'"),
                HasSubstr("from the same folder"));
    EXPECT_THAT(fix_failure_text(job, "OSError: [Errno 28] No space left on device"),
                HasSubstr("fix: the disk is full"));
    job.outcome = TrialOutcome::out_of_host_memory;
    EXPECT_THAT(fix_failure_text(job, "Killed"), HasSubstr("runs out of memory as it is"));
}

TEST(FixRunTextTest, WhyItIsSlowNamesTheCauses) {
    Rate rate{.per_second = 100, .step_seconds = 0.32};
    Finding wait{.id = "F01", .evidence = "waiting for the next batch takes 60 % of the step time"};
    wait.where = "train.py:12 (main)";
    Finding part{.id = "F02", .evidence = "num_workers is 0", .part_of = "F01"};
    EXPECT_EQ(fix_why_text(rate, {wait, part}),
              "\nWhy it is slow: 100 samples/s, 320.0 ms per step\n"
              "  waiting for data  train.py:12 (main)\n"
              "      waiting for the next batch takes 60 % of the step time\n");
    EXPECT_THAT(fix_why_text(rate, {}), HasSubstr("no cause was seen"));
}

}  // namespace
}  // namespace saturate
