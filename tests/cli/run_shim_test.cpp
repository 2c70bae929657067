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

}  // namespace
}  // namespace saturate
