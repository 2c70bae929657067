// SPDX-License-Identifier: Apache-2.0
#include "tuning/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saturate {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kText =
    "# ours\n"
    "train:\n"
    "  batch_size: 32   # small\n"
    "  num_workers: 0\n"
    "  learning_rate: 0.1\n"
    "model:\n"
    "  name: resnet\n";

TEST(ConfigFileTest, AnotherValueChangesItsLineAlone) {
    ConfigFile file(kText, "c.yaml");
    std::string text = file.with({{"batch_size", "64"}, {"num_workers", "2"}});
    EXPECT_THAT(text, HasSubstr("batch_size: 64"));
    EXPECT_THAT(text, HasSubstr("num_workers: 2"));
    EXPECT_THAT(text, HasSubstr("# ours\n"));
    EXPECT_THAT(text, HasSubstr("learning_rate: 0.1\n"));
    EXPECT_EQ(file.with({}), kText);
}

TEST(ConfigFileTest, OnlyWhatStandsInTheFileMayChange) {
    ConfigFile file(kText, "c.yaml");
    EXPECT_THAT(file.tunable(), Contains("batch_size"));
    EXPECT_THAT(file.tunable(), Contains("num_workers"));
    EXPECT_THAT(file.tunable(), Not(Contains("compile")));
    EXPECT_EQ(file.values().at("batch_size"), "32");
}

TEST(ConfigFileTest, WhatTheProgramDoesNotUseIsNotTried) {
    ConfigFile file(kText, "c.yaml");
    EXPECT_THAT(file.leave_out({4, 7}), ElementsAre("num_workers"));
    EXPECT_THAT(file.tunable(), Contains("batch_size"));
    EXPECT_THAT(file.tunable(), Not(Contains("num_workers")));
}

}  // namespace
}  // namespace saturate
