// SPDX-License-Identifier: Apache-2.0
// The two halves of the shim's hot path, the extension and its fall-back in Python, do the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run.h"

namespace saturate {
namespace {

TEST(RunShimTest, TheExtensionWritesTheRecordsThatPythonWrites) {
    std::string extension = SATURATE_EXTENSION;
    if (extension.empty()) GTEST_SKIP() << "this build is without the extension";
    Ran ran = run(
        {"python3", std::string(SATURATE_SOURCE_DIR) + "/tests/support/steps_equal.py", extension});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, testing::MatchesRegex("[0-9]+ records are the same\n"));
}

TEST(RunShimTest, StepsOfOptimizersBeforePyTorch2AreSeen) {
    std::vector<std::string> command{
        "python3", std::string(SATURATE_SOURCE_DIR) + "/tests/support/old_optimizers.py"};
    for (std::string extension : {"", SATURATE_EXTENSION}) {
        if (!extension.empty()) command.push_back(extension);
        Ran ran = run(command);
        EXPECT_EQ(ran.status, 0) << ran.err;
        EXPECT_EQ(ran.out,
                  "stepped 4\nstepped 3\ntwice stepped 3\nstepped 3\n[True, False] [18, 1] train\n"
                  "0 hooked\n");
    }
}

}  // namespace
}  // namespace saturate
