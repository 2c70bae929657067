// SPDX-License-Identifier: Apache-2.0
// 500 random mixes of known causes: how often the shares and gains are those of the mix.
#include <gtest/gtest.h>

#include "../mix_check.h"

namespace saturate {
namespace {

TEST(MixesTest, FiveHundredMixes) {
    MixScore score = score_mixes(500, 2);
    std::string wrong;
    for (const std::string& one : score.wrong) wrong += one + "\n";
    std::string said =
        fmt::format("{} mixes, {} of {} shares and {} of {} gains are right\n", score.mixes,
                    score.right_shares, score.causes, score.right_gains, score.gains);
    GTEST_LOG_(INFO) << said;
    EXPECT_GE(100 * score.right_shares, 95 * score.causes) << said << wrong;
    EXPECT_GE(100 * score.right_gains, 90 * score.gains) << said << wrong;
    EXPECT_EQ(score.false_alarms, 0) << wrong;
}

}  // namespace
}  // namespace saturate
