// SPDX-License-Identifier: Apache-2.0
// README.zh.md says what README.md says. What no translation changes is compared, section by
// section: depth of headings, blocks of code, links, rows of tables, words in `code` and figures.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "base/file.h"
#include "base/text.h"

namespace saturate {
namespace {

struct Section {
    std::size_t depth = 0;           // of its heading; 0 before the first
    std::vector<std::string> code;   // lines, fences included; comments of commands left out
    std::vector<std::string> links;  // targets, in order
    std::size_t rows = 0;
    std::vector<std::string> words, figures;  // sorted: their order is the language's
};

std::vector<std::string> found(const std::string& line, const char* pattern) {
    std::regex wanted(pattern);
    std::vector<std::string> out;
    for (std::sregex_iterator match(line.begin(), line.end(), wanted), end; match != end; ++match)
        out.push_back((*match)[1]);
    return out;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
    to.insert(to.end(), more.begin(), more.end());
}

std::vector<Section> sections_of(std::string_view text) {
    std::vector<Section> out(1);
    bool is_code = false;
    for (std::string_view view : split(text, '\n')) {
        std::string line(view);
        bool is_fence = line.starts_with("```");
        if (is_fence || is_code) {
            out.back().code.push_back(line);
            if (is_fence) is_code = !is_code;
            continue;
        }
        if (line.starts_with("    ")) {
            out.back().code.emplace_back(trim(line.substr(0, line.find(" # "))));
            continue;
        }
        if (line.starts_with('#')) out.push_back({.depth = line.find(' ')});
        Section& section = out.back();
        if (line.starts_with('|')) ++section.rows;
        append(section.links, found(line, R"(\]\(([^)]*)\))"));
        append(section.words, found(line, "`([^`]*)`"));
        std::string prose = std::regex_replace(line, std::regex(R"(`[^`]*`|\]\([^)]*\))"), "");
        append(section.figures, found(prose, R"(([0-9]+(?:\.[0-9]+)?))"));
    }
    for (Section& section : out) {
        std::ranges::sort(section.words);
        std::ranges::sort(section.figures);
        // Each leads to the other.
        std::ranges::replace(section.links, "README.zh.md", "README.md");
    }
    return out;
}

std::vector<Section> readme(const char* name) {
    return sections_of(
        read_file(std::filesystem::path(SATURATE_SOURCE_DIR) / name, 1 << 20, "a page"));
}

TEST(ReadmeTest, TheChineseOneIsOfEqualContent) {
    std::vector<Section> english = readme("README.md"), chinese = readme("README.zh.md");
    ASSERT_EQ(english.size(), chinese.size()) << "headings";
    ASSERT_GT(english.size(), 5u);
    for (std::size_t i = 0; i < english.size(); ++i) {
        SCOPED_TRACE(fmt::format("section {}", i));
        EXPECT_EQ(english[i].depth, chinese[i].depth);
        EXPECT_THAT(chinese[i].code, testing::ElementsAreArray(english[i].code));
        EXPECT_THAT(chinese[i].links, testing::ElementsAreArray(english[i].links));
        EXPECT_EQ(english[i].rows, chinese[i].rows);
        EXPECT_THAT(chinese[i].words, testing::ElementsAreArray(english[i].words));
        EXPECT_THAT(chinese[i].figures, testing::ElementsAreArray(english[i].figures));
    }
}

TEST(ReadmeTest, SeesWhatATranslationMayNotChange) {
    std::vector<Section> seen = sections_of(
        "# a `b` 1.5\n```console\n# not a heading\n```\n\n    ./x --y   # why\n"
        "| c | [d](e.md) |\n## f\n");
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_EQ(seen[1].depth, 1u);
    EXPECT_EQ(seen[1].code,
              (std::vector<std::string>{"```console", "# not a heading", "```", "./x --y"}));
    EXPECT_EQ(seen[1].links, std::vector<std::string>{"e.md"});
    EXPECT_EQ(seen[1].rows, 1u);
    EXPECT_EQ(seen[1].words, std::vector<std::string>{"b"});
    EXPECT_EQ(seen[1].figures, std::vector<std::string>{"1.5"});
    EXPECT_EQ(seen[2].depth, 2u);
}

}  // namespace
}  // namespace saturate
