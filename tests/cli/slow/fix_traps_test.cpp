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

// "# never: num_workers, pin_memory" of a script.
std::vector<std::string> never(const std::string& source) {
    std::vector<std::string> out;
    for (std::string_view name : split(header(source, "never"), ','))
        if (trim(name) != "-") out.emplace_back(trim(name));
    return out;
}

class FixTrapsTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Traps, FixTrapsTest, testing::ValuesIn(scripts()),
                         [](const auto& given) { return given.param; });

TEST_P(FixTrapsTest, IsRefusedOrHarmless) {
    Ran found = run({kSource + "/tests/support/python_torch"});
    if (found.status != 0) GTEST_SKIP() << "tests/support/python_torch finds no Python";
    std::string python(trim(found.out)), name = GetParam() + ".py";
    TemporaryFolder project, out, patched, cache;
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
    for (const std::string& setting : never(source)) {
        if (setting == "num_workers") continue;
        EXPECT_THAT(read, testing::Not(testing::Contains(setting)));
    }

    std::string asked = header(source, "level"), level = asked.empty() ? "safe" : asked;
    Ran ran = fix({"--level", level, "--budget", "3m", "-o", (out.path() / "f").string()});
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
    for (const std::string& setting : never(source))
        EXPECT_THAT(kept, testing::Not(testing::Contains(setting)));

    // What it prints is the loss of each epoch.
    if (kept.empty()) return;
    patched.file(name, source);
    Ran applied = run({"patch", "-p1", "-i", answer["patch"].string().value_or("")},
                      {.folder = patched.path()});
    ASSERT_EQ(applied.status, 0) << applied.out << applied.err;
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
