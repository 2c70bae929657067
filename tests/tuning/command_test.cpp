// SPDX-License-Identifier: Apache-2.0
#include "tuning/command.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

const std::vector<std::string> kCommand = {"python", "train.py", "--bs={batch_size}", "{other}"};

TEST(CommandTest, PlaceholdersAreSettingsInBraces) {
    EXPECT_EQ(placeholders(kCommand), std::set<std::string>{"batch_size"});
    EXPECT_TRUE(placeholders({"python", "{", "{nothing}"}).empty());
}

TEST(CommandTest, WhatNeedsNoPlaceholderGoesThroughTheShim) {
    CommandWords words = command_words(
        kCommand, {{"batch_size", "32"}},
        {{"num_workers", "2"}, {"persistent_workers", "true"}, {"precision", "bf16"}});
    EXPECT_EQ(words.words, (std::vector<std::string>{"python", "train.py", "--bs=32", "{other}"}));
    EXPECT_EQ(words.apply, "num_workers=2,persistent_workers,autocast");
}

TEST(CommandTest, APlaceholderIsTheScriptsOwnWay) {
    CommandWords words = command_words({"train", "-j{num_workers}"}, {{"num_workers", "0"}},
                                       {{"num_workers", "3"}, {"pin_memory", "false"}});
    EXPECT_EQ(words.words, (std::vector<std::string>{"train", "-j3"}));
    EXPECT_EQ(words.apply, "");
}

TEST(CommandTest, OnACpuNothingForAGpuIsTried) {
    EXPECT_TRUE(tunable_settings(kCommand, false).contains("fused_optimizer"));
    EXPECT_FALSE(tunable_settings(kCommand, true).contains("fused_optimizer"));
    EXPECT_TRUE(tunable_settings(kCommand, true).contains("batch_size"));
    EXPECT_FALSE(tunable_settings({"python"}, true).contains("batch_size"));
}

}  // namespace
}  // namespace saturate
