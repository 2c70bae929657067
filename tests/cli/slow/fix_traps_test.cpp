// SPDX-License-Identifier: Apache-2.0
// fix on scripts in which a usual change would break the training, change it, or do nothing
// (tests/python/scripts/traps): the change is left out or refused, what is kept leaves every loss as
// it was, and the script's folder stays as it is. Needs PyTorch (tests/support/python_torch --make).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

const std::string kSource = SATURATE_SOURCE_DIR;

std::vector<std::string> scripts() {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(kSource + "/tests/python/scripts/traps"))
        if (entry.path().extension() == ".py") out.push_back(entry.path().stem());
    std::ranges::sort(out);
    return out;
}

std::map<std::string, std::string> contents(const fs::path& folder) {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file())
            out[fs::relative(entry.path(), folder)] = read_if_there(entry.path());
    return out;
}

// "# name: value" of a script.
std::string header(const std::string& source, const std::string& name) {
    std::string words = "# " + name + ": ";
    std::size_t at = source.find(words);
    if (at == std::string::npos) return "";
    at += words.size();
    return source.substr(at, source.find_first_of("\r\n", at) - at);
}

// "# never: num_workers, pin_memory" of a script: settings that must not be kept. "# kept: threads":
// settings that must be kept, as there is much to gain; "-": none.
std::vector<std::string> settings(const std::string& source, const std::string& name) {
    std::vector<std::string> out;
    for (std::string_view setting : split(header(source, name), ','))
        if (trim(setting) != "-") out.emplace_back(trim(setting));
    return out;
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> out;
    for (std::string_view line : split(text, '\n')) out.emplace_back(line);
    return out;
}

// The lines of `all` without the first of each of `some`, in order.
std::vector<std::string> without(std::vector<std::string> all,
                                 const std::vector<std::string>& some) {
    auto from = all.begin();
    for (const std::string& line : some) {
        auto found = std::find(from, all.end(), line);
        if (found != all.end()) from = all.erase(found);
    }
    return all;
}

// What the patch leaves alone keeps every byte, and what it writes has the script's line ends and
// indentation.
void expect_others_as_they_were(const std::string& source, const std::string& patched,
                                const std::string& patch) {
    std::vector<std::string> removed, added;
    for (const std::string& line : lines_of(patch)) {
        if (line.starts_with("--- ") || line.starts_with("+++ ")) continue;
        if (line.starts_with('-')) removed.push_back(line.substr(1));
        if (line.starts_with('+')) added.push_back(line.substr(1));
    }
    EXPECT_FALSE(added.empty());
    EXPECT_EQ(without(lines_of(patched), added), without(lines_of(source), removed));
    bool has_returns = source.find('\r') != std::string::npos;
    bool has_tabs = source.find("\n\t") != std::string::npos;
    for (const std::string& line : added) {
        EXPECT_EQ(line.ends_with('\r'), has_returns) << line;
        std::string indent = line.substr(0, line.find_first_not_of(" \t"));
        EXPECT_EQ(indent.find(has_tabs ? ' ' : '\t'), std::string::npos) << line;
    }
}

class FixTrapsTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Traps, FixTrapsTest, testing::ValuesIn(scripts()),
                         [](const auto& given) { return given.param; });

TEST_P(FixTrapsTest, IsRefusedOrHarmless) {
    Ran found = run({kSource + "/tests/support/python_torch"});
    if (found.status != 0) GTEST_SKIP() << "tests/support/python_torch finds no Python";
    std::string python(trim(found.out)), name = GetParam() + ".py";
    TemporaryFolder project, out, patched, by_git, cache;
    std::string source = read_if_there(kSource + "/tests/python/scripts/traps/" + name);
    project.file(name, source);
    auto before = contents(project.path());

    std::map<std::string, std::string> environment = {
        {"CUDA_VISIBLE_DEVICES", "-1"},
        {"SATURATE_CACHE", cache.path().string()},
        {"REPORT_TO", (out.path() / "reported").string()}};
    auto fix = [&](const std::vector<std::string>& options) {
        std::vector<std::string> words = {SATURATE_BINARY, "fix", "--json"};
        words.insert(words.end(), options.begin(), options.end());
        words.insert(words.end(), {"--", python, name});
        return run(words, {.folder = project.path(), .environment = environment});
    };
    // By reading alone; what only a trial can show is that workers fail.
    Ran dry = fix({"--dry-run", "--level", "training", "-o", (out.path() / "d").string()});
    ASSERT_EQ(dry.status, 0) << dry.err;
    std::vector<std::string> read, kept;
    Json planned = Json::parse(dry.out, "fix.json");  // outlives the loop over its items
    for (const Json& proposal : planned["proposals"].items())
        read.push_back(*proposal["setting"].string());
    for (const std::string& setting : settings(source, "never")) {
        if (setting == "num_workers") continue;
        EXPECT_THAT(read, testing::Not(testing::Contains(setting)));
    }

    std::string asked = header(source, "level"), level = asked.empty() ? "safe" : asked;
    Ran ran = fix({"--level", level, "--budget", "4m", "-o", (out.path() / "f").string()});
    ASSERT_TRUE(ran.status == 0 || ran.status == 1) << ran.err;
    EXPECT_EQ(contents(project.path()), before);
    EXPECT_FALSE(fs::exists(out.path() / "reported"));
    bool is_safe = true;
    Json answer = Json::parse(ran.out, "fix.json");
    for (const Json& proposal : answer["proposals"].items()) {
        std::string setting = *proposal["setting"].string(),
                    outcome = *proposal["outcome"].string();
        RecordProperty(setting, outcome);
        if (outcome != "kept") continue;
        kept.push_back(setting);
        is_safe &= proposal["level"].string() == "safe";
    }
    for (const std::string& setting : settings(source, "never"))
        EXPECT_THAT(kept, testing::Not(testing::Contains(setting)));
    for (const std::string& setting : settings(source, "kept"))
        EXPECT_THAT(kept, testing::Contains(setting)) << ran.err << ran.out;
    if (header(source, "kept") == "-") {
        EXPECT_THAT(kept, testing::IsEmpty());
    }
    if (kept.empty()) return;

    std::string patch = answer["patch"].string().value_or("");
    patched.file(name, source);
    by_git.file(name, source);
    Ran applied = run({"patch", "-p1", "-i", patch}, {.folder = patched.path()});
    ASSERT_EQ(applied.status, 0) << applied.out << applied.err;
    applied = run({"git", "apply", patch}, {.folder = by_git.path()});
    ASSERT_EQ(applied.status, 0) << applied.out << applied.err;
    std::string after = read_if_there(patched.path() / name);
    EXPECT_EQ(read_if_there(by_git.path() / name), after);
    expect_others_as_they_were(source, after, read_if_there(patch));
    // What it prints is the loss of each epoch.
    environment["EPOCHS"] = "2";
    Ran as_it_was = run({python, name}, {.folder = project.path(), .environment = environment});
    Ran as_patched = run({python, name}, {.folder = patched.path(), .environment = environment});
    EXPECT_EQ(as_patched.status, 0) << as_patched.err;
    if (is_safe) {
        EXPECT_EQ(as_patched.out, as_it_was.out);
    }
}

}  // namespace
}  // namespace saturate
