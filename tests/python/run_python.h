// SPDX-License-Identifier: Apache-2.0
// Runs a script of tests/python/scripts, alone and under `saturate run`.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "support/run.h"
#include "telemetry/record_reader.h"

namespace saturate {

inline constexpr const char* kSource = SATURATE_SOURCE_DIR;

// Returns the Python that a script of tests/support prints, or "" if there is none.
inline std::string python_of(const std::string& finder) {
    Ran ran = run({std::string(kSource) + "/tests/support/" + finder});
    return ran.status == 0 ? std::string(trim(ran.out)) : "";
}

class RunPythonTest : public testing::Test {
  protected:
    // Skips the test with a message if there is no such Python.
    void need(const std::string& finder) {
        python_ = python_of(finder);
        if (python_.empty()) GTEST_SKIP() << "tests/support/" << finder << " finds no Python";
    }
    std::vector<std::string> script(const std::string& name,
                                    const std::vector<std::string>& arguments = {}) const {
        std::vector<std::string> out = {python_,
                                        std::string(kSource) + "/tests/python/scripts/" + name};
        out.insert(out.end(), arguments.begin(), arguments.end());
        return out;
    }
    Ran plain(const std::vector<std::string>& command) const {
        return run(command, {.folder = folder_.path(), .environment = environment_});
    }
    // Runs the command under `saturate run`; the record is in folder_/r.
    Ran watched(const std::vector<std::string>& command,
                std::vector<std::string> options = {}) const {
        std::vector<std::string> words = {SATURATE_BINARY, "run", "-o", "r"};
        words.insert(words.end(), options.begin(), options.end());
        words.emplace_back("--");
        words.insert(words.end(), command.begin(), command.end());
        return plain(words);
    }
    [[nodiscard]] RunRecord record(const std::string& name = "r") const {
        return read_run(folder_.path() / name);
    }
    static int events(const RunRecord& record, EventKind kind) {
        return static_cast<int>(std::ranges::count(record.events, kind, &EventRecord::kind));
    }
    // Returns the states of a change by --apply, in order: "applied", "taken back".
    static std::vector<std::string> states(const RunRecord& record, const std::string& name) {
        std::vector<std::string> out;
        for (const Json& change : record.python["changes"].items())
            if (change["name"].string() == name)
                out.push_back(change["state"].string().value_or(""));
        return out;
    }
    void expect_same(const std::vector<std::string>& command) {
        Ran alone = plain(command);
        ASSERT_EQ(alone.status, 0) << alone.err;
        Ran ran = watched(command, {"--profile", "off"});
        EXPECT_EQ(ran.status, 0) << ran.err;
        EXPECT_EQ(ran.out, alone.out);
        EXPECT_THAT(ran.err, testing::Not(testing::HasSubstr("no longer watching from inside")));
    }
    // Returns the output of "saturate diagnose r --json".
    [[nodiscard]] Json diagnosed() const {
        Ran ran = run({SATURATE_BINARY, "diagnose", "r", "--json"}, {.folder = folder_.path()});
        return Json::parse(ran.out, "stdout");
    }
    std::string python_;
    std::map<std::string, std::string> environment_ = {{"CUDA_VISIBLE_DEVICES", "-1"}};
    TemporaryFolder folder_;
};

}  // namespace saturate
