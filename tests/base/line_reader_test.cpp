// SPDX-License-Identifier: Apache-2.0
#include "base/line_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "support/run.h"

namespace saturate {
namespace {

std::vector<std::string> lines_of(const std::string& content, std::size_t longest = 1 << 20) {
    TemporaryFolder folder;
    LineReader reader(folder.file("f", content), "a file", longest);
    std::vector<std::string> out;
    while (auto line = reader.next()) {
        out.push_back(std::string(line->text) + (line->whole ? "" : " (cut)") +
                      (line->too_long ? " (long)" : ""));
        EXPECT_EQ(line->number, static_cast<std::int64_t>(out.size()));
    }
    return out;
}

using Lines = std::vector<std::string>;

TEST(LineReaderTest, SaysWhetherTheLastLineIsWhole) {
    EXPECT_EQ(lines_of(""), Lines{});
    EXPECT_EQ(lines_of("a\n\nb\n"), (Lines{"a", "", "b"}));
    EXPECT_EQ(lines_of("a\nb"), (Lines{"a", "b (cut)"}));
}

TEST(LineReaderTest, LinesCrossTheChunksOfTheBuffer) {
    std::string first(70'000, 'x'), second(64 * 1024, 'y');
    EXPECT_EQ(lines_of(first + "\n" + second + "\nend\n"), (Lines{first, second, "end"}));
}

TEST(LineReaderTest, ALineBeyondTheLimitIsCutAndSaidToBe) {
    EXPECT_EQ(lines_of("12345678\nab\n12345678", 4),
              (Lines{"1234 (long)", "ab", "1234 (cut) (long)"}));
}

TEST(LineReaderTest, AMissingFileIsTheUsersError) {
    TemporaryFolder folder;
    try {
        LineReader reader(folder.path() / "none", "a recording");
        FAIL() << "no error";
    } catch (const UserError& error) {
        EXPECT_EQ(error.what(), "error: " + (folder.path() / "none").string() +
                                    ": not readable: No such file or directory\n"
                                    "  expected: a recording");
    }
}

TEST(LineReaderTest, GoesOnWhereAnEarlierReaderWas) {
    TemporaryFolder folder;
    std::filesystem::path path = folder.file("f", "one\ntwo\nthr");
    LineReader first(path, "a file");
    first.next();
    std::uint64_t position = first.position();
    EXPECT_EQ(position, 4u);
    LineReader second(path, "a file");
    second.start_at(position, 1);
    auto line = second.next();
    ASSERT_TRUE(line.has_value());
    EXPECT_EQ(line->text, "two");
    EXPECT_EQ(line->number, 2);
    EXPECT_EQ(second.position(), 8u);
    EXPECT_FALSE(second.next()->whole);
}

}  // namespace
}  // namespace saturate
