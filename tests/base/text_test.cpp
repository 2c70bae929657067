// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

TEST(TextTest, TrimsAndSplits) {
    EXPECT_EQ(trim("  a b\r\n"), "a b");
    EXPECT_EQ(trim(" \t"), "");
    EXPECT_EQ(split("a,,b", ',').size(), 3u);
    EXPECT_EQ(split("", ',').size(), 1u);
}

TEST(TextTest, TakesOnlyWholeNumbersAsNumbers) {
    EXPECT_EQ(parse_integer("12"), 12);
    EXPECT_EQ(parse_integer("-3"), -3);
    EXPECT_FALSE(parse_integer("12x"));
    EXPECT_FALSE(parse_integer(""));
    EXPECT_FALSE(parse_integer("99999999999999999999"));
    EXPECT_EQ(parse_number("3.0e-4"), 3.0e-4);
    EXPECT_FALSE(parse_number(" 1"));
    EXPECT_FALSE(parse_number("1e"));
}

TEST(TextTest, SuggestsWhatIsNearAndNothingElse) {
    std::vector<std::string> verbs{"train", "tune", "doctor", "optimize"};
    EXPECT_EQ(closest("trian", verbs), "train");
    EXPECT_EQ(closest("optimise", verbs), "optimize");
    EXPECT_EQ(closest("Doctor", verbs), "doctor");
    EXPECT_EQ(closest("banana", verbs), std::nullopt);
    EXPECT_EQ(closest("", verbs), std::nullopt);
    EXPECT_EQ(closest(std::string(100000, 'a'), verbs), std::nullopt);
}

TEST(TextTest, ShowsBytesInTheUnitPeopleRead) {
    EXPECT_EQ(bytes_text(0), "0 B");
    EXPECT_EQ(bytes_text(1023), "1023 B");
    EXPECT_EQ(bytes_text(1536), "1.5 KiB");
    EXPECT_EQ(bytes_text(24ull << 30), "24.0 GiB");
}

TEST(TextTest, CountsColumnsNotBytes) {
    EXPECT_EQ(display_width("abc"), 3u);
    EXPECT_EQ(display_width("显存"), 4u);
    EXPECT_EQ(display_width("é"), 1u);
    EXPECT_EQ(display_width("\xff\xfe"), 2u);
    EXPECT_EQ(pad_right("显", 4), "显  ");
    EXPECT_EQ(pad_right("abcdef", 4), "abcdef");
}

TEST(TextTest, QuotesWhateverAFileHolds) {
    EXPECT_EQ(in_quotes("a\tb\n"), "\"a\\tb\\n\"");
    EXPECT_EQ(in_quotes("\x01\x80"), "\"\\x01\\x80\"");
    EXPECT_EQ(in_quotes("显存"), "\"显存\"");
    EXPECT_EQ(in_quotes("abcdef", 3), "\"abc...\"");
}

}  // namespace
}  // namespace saturate
