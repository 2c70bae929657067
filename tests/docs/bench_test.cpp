// SPDX-License-Identifier: Apache-2.0
// The programs of bench/ are one command on a fresh clone: none of them expects a build that
// somebody made before, and each of them starts.
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

TEST(BenchProgramsTest, EachBuildsWhatItMeasuresAndStarts) {
    int programs = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(SATURATE_SOURCE_DIR) / "bench")) {
        bool is_program = entry.is_regular_file() && entry.path().extension().empty();
        if (!is_program) continue;
        ++programs;
        std::string text = read_file(entry.path(), 1 << 20, "a program");
        for (const char* expected : {"build/dev", "\"build\" / \"dev\"", "no build"})
            EXPECT_EQ(text.find(expected), std::string::npos) << entry.path() << expected;
        bool builds = text.find("from building import") != std::string::npos ||
                      text.find("tools/bootstrap") != std::string::npos;
        EXPECT_TRUE(builds) << entry.path();
        if (text.find("python3") == std::string::npos) continue;
        Ran ran = run({"python3", "-B", entry.path().string(), "--help"});
        EXPECT_EQ(ran.status, 0) << entry.path() << ran.err;
    }
    EXPECT_GT(programs, 10);
}

}  // namespace
}  // namespace saturate
