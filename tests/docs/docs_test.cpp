// SPDX-License-Identifier: Apache-2.0
// Runs the commands that README.md and docs/*.md show. A fenced block that begins with ```console
// holds lines "$ command" and what it prints; a line "..." stands for any lines. Blocks of other
// kinds are not run. Commands run in a scratch folder with the project's configs/, examples/ and tests/;
// `./saturate` there is the built program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
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

// Whether the lines match, "..." standing for any number of them, " ... " for anything inside a
// line and " ..." for the rest of one.
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
    if (shown[0].ends_with(" ...") && gap == std::string::npos)
        same = got[0].starts_with(shown[0].substr(0, shown[0].size() - 3));
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

// A session that trains needs the engine, one with a script of torch a Python that has it.
bool can_play(const std::vector<Shown>& session, const std::string& python) {
    auto any = [&](std::string_view words) {
        return std::ranges::any_of(session, [&](const Shown& shown) {
            return shown.command.find(words) != std::string::npos;
        });
    };
#ifndef SATURATE_HAS_ENGINE
    if (any("saturate train") || any("saturate tune --config")) return false;
#endif
    return !python.empty() || !any("-- python ");
}

void play(const fs::path& file) {
    static const std::string kPython = [] {
        Ran found = run({SATURATE_SOURCE_DIR "/tests/support/python_torch"});
        return found.status == 0 ? std::string(trim(found.out)) : std::string();
    }();
    for (const std::vector<Shown>& session : sessions_of(file)) {
        if (!can_play(session, kPython)) continue;
        TemporaryFolder scratch;
        for (const char* part : {"configs", "examples"}) {
            fs::copy(fs::path(SATURATE_SOURCE_DIR) / part, scratch.path() / part,
                     fs::copy_options::recursive);
        }
        fs::create_symlink(SATURATE_BINARY, scratch.path() / "saturate");
        fs::create_symlink(fs::path(SATURATE_SOURCE_DIR) / "tests", scratch.path() / "tests");
        // Not a link: a virtual environment is found by the place of its own program.
        fs::path python = scratch.file("bin/python", "#!/bin/sh\nexec " + kPython + " \"$@\"\n");
        fs::permissions(python, fs::perms::owner_all);
        std::string path = python.parent_path().string() + ":" + std::getenv("PATH");
        for (const Shown& shown : session) {
            Ran ran = run({"bash", "-c", shown.command + " 2>&1"},
                          {.folder = scratch.path(),
                           .environment = {{"NO_COLOR", "1"},
                                           {"LC_ALL", "C.UTF-8"},
                                           {"CUDA_VISIBLE_DEVICES", "-1"},
                                           {"PATH", path}}});
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
    EXPECT_TRUE(matches(std::vector<std::string>{"in ..."}, std::vector<std::string>{"in 5 s"}));
    EXPECT_FALSE(matches(std::vector<std::string>{"in ..."}, std::vector<std::string>{"on 5 s"}));
    EXPECT_FALSE(matches(shown, std::vector<std::string>{"a", "b 12 c", "d"}));
}

TEST(DocsTest, TheReadmesTellTheTruth) {
    for (const char* name : {"README.md", "README.zh.md"}) {
        fs::path readme = fs::path(SATURATE_SOURCE_DIR) / name;
        EXPECT_FALSE(sessions_of(readme).empty()) << name;
        play(readme);
    }
}

TEST(DocsTest, TheDocsTellTheTruth) {
    for (const auto& entry : fs::directory_iterator(fs::path(SATURATE_SOURCE_DIR) / "docs")) {
        if (entry.path().extension() == ".md") play(entry.path());
    }
}

// The verbs as --help lists them, two spaces before each.
std::vector<std::string> verb_names() {
    std::vector<std::string> out;
    std::string help = run({SATURATE_BINARY, "--help"}).out;
    for (std::string_view line : split(help, '\n')) {
        if (line.starts_with("  ") && line.size() > 3 && line[2] != ' ')
            out.emplace_back(line.substr(2, line.find(' ', 2) - 2));
    }
    return out;
}

TEST(DocsTest, EveryVerbHasAPage) {
    fs::path docs = fs::path(SATURATE_SOURCE_DIR) / "docs";
    std::vector<std::string> names = verb_names();
    EXPECT_GE(names.size(), 12u);
    for (const std::string& name : names)
        EXPECT_TRUE(fs::exists(docs / (name + ".md"))) << "docs/" << name << ".md is missing";
}

TEST(DocsTest, LinksBetweenPagesLeadSomewhere) {
    std::vector<fs::path> pages{fs::path(SATURATE_SOURCE_DIR) / "README.md",
                                fs::path(SATURATE_SOURCE_DIR) / "README.zh.md"};
    for (const auto& entry : fs::directory_iterator(fs::path(SATURATE_SOURCE_DIR) / "docs"))
        if (entry.path().extension() == ".md") pages.push_back(entry.path());
    int links = 0;
    for (const fs::path& page : pages) {
        std::string text = read_file(page, 1 << 20, "a page");
        for (std::size_t at = text.find("]("); at != text.npos; at = text.find("](", at + 2)) {
            std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
            if (target.find("://") != target.npos || target.find(' ') != target.npos) continue;
            target = target.substr(0, target.find('#'));
            ++links;
            EXPECT_TRUE(target.empty() || fs::exists(page.parent_path() / target))
                << page.filename() << " -> " << target;
        }
    }
    EXPECT_GT(links, 20);
}

}  // namespace
}  // namespace saturate
