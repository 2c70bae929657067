// SPDX-License-Identifier: Apache-2.0
// Text in, text out. A case is a folder tests/golden/<area>/<case>/ with
//   command.txt   what follows `saturate`, one shell line; it runs in a copy of the folder, beside
//                 configs/
//   expected.txt  what it said, its exit code, and every file it made
//   WHY.md        what the case is for (optional)
// tools/golden-accept rewrites expected.txt; review the difference like code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/file.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(SATURATE_SOURCE_DIR) / "tests/golden";

std::vector<std::string> cases() {
    std::vector<std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(kGolden)) {
        if (entry.path().filename() == "command.txt")
            out.push_back(fs::relative(entry.path().parent_path(), kGolden));
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::map<std::string, std::string> files_below(const fs::path& folder) {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file())
            out[fs::relative(entry.path(), folder)] = read_file(entry.path(), 1 << 26, "a file");
    }
    return out;
}

std::string play(const std::string& name) {
    TemporaryFolder scratch;
    fs::copy(kGolden / name, scratch.path(), fs::copy_options::recursive);
    fs::remove(scratch.path() / "expected.txt");
    fs::copy(fs::path(SATURATE_SOURCE_DIR) / "configs", scratch.path() / "configs",
             fs::copy_options::recursive);
    std::string command = read_file(scratch.path() / "command.txt", 1 << 16, "a command");
    std::map<std::string, std::string> before = files_below(scratch.path());
    Ran ran = run({"bash", "-c", fmt::format("'{}' {}", SATURATE_BINARY, command)},
                  {.folder = scratch.path(),
                   .environment = {{"NO_COLOR", "1"}, {"LC_ALL", "C.UTF-8"}, {"COLUMNS", "100"}}});
    std::string out = ran.out;
    if (!ran.err.empty()) out += "[stderr]\n" + ran.err;
    out += fmt::format("[exit {}]\n", ran.status);
    std::map<std::string, std::string> after = files_below(scratch.path());
    for (const auto& [path, content] : after) {
        auto old = before.find(path);
        if (old == before.end() || old->second != content)
            out += fmt::format("[file {}]\n{}", path, content);
    }
    for (const auto& [path, content] : before) {
        if (!after.count(path)) out += fmt::format("[gone {}]\n", path);
    }
    return out;
}

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, SaysWhatItSaid) {
    std::string got = play(GetParam());
    fs::path expected = kGolden / GetParam() / "expected.txt";
    if (std::getenv("SATURATE_GOLDEN_ACCEPT")) {
        std::ofstream(expected, std::ios::binary) << got;
        return;
    }
    EXPECT_EQ(got, read_file(expected, 1 << 26, "the expected text"));
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTest, testing::ValuesIn(cases()), [](const auto& info) {
    std::string name = info.param;
    for (char& c : name) {
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    }
    return name;
});

}  // namespace
}  // namespace saturate
