// SPDX-License-Identifier: Apache-2.0
#include "report/finding_words.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace saturate {
namespace {

bool has_chinese(std::string_view text) {
    return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0xe0; });
}

TEST(FindingWordsTest, EveryFindingHasAChineseName) {
    for (const FindingRow& row : finding_table()) {
        Finding finding{.id = std::string(row.id)};
        FindingWords words = words_of(finding, "zh");
        EXPECT_TRUE(has_chinese(words.name)) << row.id;
        EXPECT_FALSE(words.fix.empty()) << row.id;
        // A fix that is code alone is the same in every language.
        EXPECT_TRUE(has_chinese(words.fix) || words.fix == row.fix) << row.id;
    }
}

TEST(FindingWordsTest, ChineseSaysHowMuchAndKeepsAFixOfItsOwn) {
    Finding finding{.id = "F01", .share_percent = 50, .ms_per_step = 44.6};
    finding.evidence = "the device waits";
    FindingWords words = words_of(finding, "zh");
    EXPECT_EQ(words.name, "等待数据");
    EXPECT_EQ(words.seen, "占步时的 50.0%，每步 44.6 毫秒。");
    EXPECT_EQ(words.evidence, "the device waits");
    finding.fix = "num_workers=3";
    EXPECT_EQ(words_of(finding, "zh").fix, "num_workers=3");
    finding.ms_per_step = 0;
    EXPECT_EQ(words_of(finding, "zh").seen, "占时间的 50.0%。");
}

TEST(FindingWordsTest, EnglishIsTheTable) {
    Finding finding{.id = "F07", .share_percent = 50};
    FindingWords words = words_of(finding, "en");
    EXPECT_EQ(words.name, "explicit synchronisation");
    EXPECT_EQ(words.seen, "");
    EXPECT_EQ(words.fix, "remove torch.cuda.synchronize(); time with CUDA events");
}

}  // namespace
}  // namespace saturate
