// SPDX-License-Identifier: Apache-2.0
#include "base/log_text.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

TEST(LogTextTest, LinesAreThoseThatATerminalShows) {
    std::vector<std::string_view> shown = {"start", "100 %", "a", "", ""};
    EXPECT_EQ(terminal_lines("start\n  0 %\r 50 %\r100 %\na\r\n\r\r\n"), shown);
}

TEST(LogTextTest, CutsBetweenCharacters) {
    EXPECT_EQ(shortened("显存不足", 2), "显存...");
    EXPECT_EQ(shortened("abc", 3), "abc");
    EXPECT_EQ(shortened("", 3), "");
}

}  // namespace
}  // namespace saturate
