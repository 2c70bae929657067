// SPDX-License-Identifier: Apache-2.0
#include "process/trial_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run.h"

namespace saturate {
namespace {

using testing::Contains;
using testing::Not;

TEST(TrialCommandTest, ACommandWithAFileReadsItsOwnCopy) {
    TuneRequest request;
    request.job = {.config = "conf/c.yaml", .command = {"python", "main.py", "--config={config}"}};
    request.file.emplace("batch_size: 32\nnum_workers: 0\n", "conf/c.yaml");
    std::vector<std::string> words =
        trial_command(request, {.settings = {{"num_workers", "2"}}}, "out/trial-3");
    EXPECT_THAT(words, Contains("--config=out/trial-3.yaml"));
    EXPECT_THAT(words, Not(Contains("--apply"))) << "the file alone changes";
    EXPECT_EQ(trial_config(request, "out/trial-3"), "out/trial-3.yaml");
}

// ... and a tracker of a version that refuses files does not make the job fail.
TEST(TrialCommandTest, WhatATrialReportsStaysInItsTree) {
    TemporaryFolder folder;
    ScratchTree tree({.folder = folder.path(), .inside = "", .parent = {}, .edited = {}});
    std::vector<std::string> words = command_in_tree(tree, {"python3", "train.py"});
    EXPECT_THAT(words, Contains("WANDB_MODE=disabled"));
    EXPECT_THAT(words, Contains("MLFLOW_ALLOW_FILE_STORE=true"));
    EXPECT_THAT(words, Contains("MLFLOW_TRACKING_URI=file://" + tree.root().string() + "/mlruns"));
}

}  // namespace
}  // namespace saturate
