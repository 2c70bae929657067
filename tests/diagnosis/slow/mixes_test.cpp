// SPDX-License-Identifier: Apache-2.0
// 500 random mixes of known causes, whole and damaged: how often the shares and gains are those of
// the mix.
#include <gtest/gtest.h>

#include "../mix_check.h"

namespace saturate {
namespace {

void expect_right(const MixScore& score) {
    std::string wrong;
    for (const std::string& one : score.wrong) wrong += one + "\n";
    std::string said = fmt::format(
        "{} mixes, {} of {} shares and {} of {} gains are right, {} false alarms\n", score.mixes,
        score.right_shares, score.causes, score.right_gains, score.gains, score.false_alarms);
    GTEST_LOG_(INFO) << said;
    EXPECT_GE(100 * score.right_shares, 95 * score.causes) << said << wrong;
    EXPECT_GE(100 * score.right_gains, 90 * score.gains) << said << wrong;
    EXPECT_EQ(score.false_alarms, 0) << wrong;
}

TEST(MixesTest, FiveHundredMixes) { expect_right(score_mixes(500, 2)); }

TEST(MixesTest, FiveHundredWithTheHeadCutOff) {
    expect_right(score_mixes(500, 3, Damage::cut_head));
}

TEST(MixesTest, FiveHundredThatStartUp) { expect_right(score_mixes(500, 4, Damage::startup)); }

TEST(MixesTest, FiveHundredThatRecordAGraph) {
    expect_right(score_mixes(500, 5, Damage::recording));
}

}  // namespace
}  // namespace saturate
