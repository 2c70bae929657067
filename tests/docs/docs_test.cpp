// SPDX-License-Identifier: Apache-2.0
// Runs the commands that README.md and docs/*.md show. A fenced block that begins with ```console
// holds lines
// "$ command" and what it prints; a line "..." stands for any lines. Blocks of other kinds are not
// run. Commands run in a scratch folder with the project's configs/ and tests/; `./saturate` there
// is the built program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/text.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

struct Shown {
    int line = 0;
    std::string command;
    std::vector<std::string> output;
};

std::vector<std::vector<Shown>> sessions_of(const fs::path& file) {
    std::vector<std::vector<Shown>> out;
    std::string text = read_file(file, 1 << 20, "a page");
    bool inside = false;
    int number = 0;
    for (std::string_view line : split(text, '\n')) {
        ++number;
        if (line == "```console") {
            inside = true;
            out.emplace_back();
        } else if (line.starts_with("```")) {
            inside = false;
        } else if (inside && line.starts_with("$ ")) {
            out.back().push_back({number, std::string(line.substr(2)), {}});
        } else if (inside && !out.back().empty()) {
            out.back().back().output.emplace_back(line);
        }
    }
    return out;
}

// Whether the lines match, "..." standing for any number of them and " ... " for anything inside a
// line.
bool matches(std::span<const std::string> shown, std::span<const std::string> got) {
    if (shown.empty()) return got.empty();
    if (shown[0] == "...") {
        for (std::size_t skip = 0; skip <= got.size(); ++skip) {
            if (matches(shown.subspan(1), got.subspan(skip))) return true;
        }
        return false;
    }
    if (got.empty()) return false;
    std::size_t gap = shown[0].find(" ... ");
    bool same = shown[0] == got[0];
    if (gap != std::string::npos) {
        same = got[0].starts_with(shown[0].substr(0, gap)) &&
               got[0].ends_with(shown[0].substr(gap + 5));
    }
    return same && matches(shown.subspan(1), got.subspan(1));
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    for (std::string_view line : split(text, '\n')) out.emplace_back(line);
    while (!out.empty() && out.back().empty()) out.pop_back();
    return out;
}

void play(const fs::path& file) {
    for (const std::vector<Shown>& session : sessions_of(file)) {
#ifndef SATURATE_HAS_ENGINE
        auto needs_engine = [](const Shown& shown) {
            return shown.command.find("saturate train") != std::string::npos ||
                   shown.command.find("saturate tune --config") != std::string::npos;
        };
        if (std::ranges::any_of(session, needs_engine)) continue;  // built without LibTorch
#endif
        TemporaryFolder scratch;
        fs::copy(fs::path(SATURATE_SOURCE_DIR) / "configs", scratch.path() / "configs",
                 fs::copy_options::recursive);
        fs::create_symlink(SATURATE_BINARY, scratch.path() / "saturate");
        fs::create_symlink(fs::path(SATURATE_SOURCE_DIR) / "tests", scratch.path() / "tests");
        for (const Shown& shown : session) {
            Ran ran = run({"bash", "-c", shown.command + " 2>&1"},
                          {.folder = scratch.path(),
                           .environment = {{"NO_COLOR", "1"}, {"LC_ALL", "C.UTF-8"}}});
            std::vector<std::string> expected = shown.output;
            while (!expected.empty() && expected.back().empty()) expected.pop_back();
            EXPECT_TRUE(matches(expected, lines_of(ran.out)))
                << file.filename() << ":" << shown.line << ": $ " << shown.command << "\nprinted:\n"
                << ran.out;
        }
    }
}

TEST(DocsTest, ComparesWithGaps) {
    std::vector<std::string> shown{"a", "...", "b ... c"};
    EXPECT_TRUE(matches(shown, std::vector<std::string>{"a", "x", "y", "b 12 c"}));
    EXPECT_TRUE(matches(shown, std::vector<std::string>{"a", "b  c"}));
    EXPECT_FALSE(matches(shown, std::vector<std::string>{"a", "x", "y"}));
    EXPECT_FALSE(matches(shown, std::vector<std::string>{"a", "b 12 c", "d"}));
}

TEST(DocsTest, TheReadmeTellsTheTruth) {
    fs::path readme = fs::path(SATURATE_SOURCE_DIR) / "README.md";
    EXPECT_FALSE(sessions_of(readme).empty());
    play(readme);
}

TEST(DocsTest, TheDocsTellTheTruth) {
    for (const auto& entry : fs::directory_iterator(fs::path(SATURATE_SOURCE_DIR) / "docs")) {
        if (entry.path().extension() == ".md") play(entry.path());
    }
}

}  // namespace
}  // namespace saturate
