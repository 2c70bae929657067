// SPDX-License-Identifier: Apache-2.0
// What `saturate selftest` writes for others to read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "support/run.h"

namespace saturate {
namespace {

class SelftestCliTest : public testing::Test {
  protected:
    void SetUp() override {
#ifndef SATURATE_HAS_ENGINE
        GTEST_SKIP() << "built without LibTorch";
#endif
    }
    [[nodiscard]] std::string text() const { return read_file(file_, 1 << 20, "a report"); }
    [[nodiscard]] Json report() const { return Json::parse(text(), file_); }
    TemporaryFolder folder_;
    std::string file_ = folder_.path() / "s.json";
};

TEST_F(SelftestCliTest, AFolderOfSomebodyIsNotNamed) {
    Ran ran = run({SATURATE_BINARY, "selftest", "-o", file_},
                  {.environment = {{"TMPDIR", folder_.path() / "alice"}}});
    EXPECT_EQ(ran.status, 1) << ran.err;
    EXPECT_THAT(text(), testing::HasSubstr("[$TMPDIR]"));
    EXPECT_THAT(text(), testing::Not(testing::HasSubstr("alice")));
    EXPECT_EQ(report()["checks_passed"].integer(), 32);  // two want a folder
}

// As a check that does not end is (VerbsTest.WhatTrainsNeedsABuildWithLibTorch).
TEST_F(SelftestCliTest, ACalibrationThatDoesNotEndIsNamed) {
    (void)run({"bash", "-c",
               "\"$0\" selftest --calibrate -o \"$1\" & until grep -q '\"calibration\"' \"$1\" "
               "2>/dev/null || ! kill -0 $! 2>/dev/null; do :; done; kill -9 $!",
               SATURATE_BINARY, file_});
    EXPECT_EQ(report()["running"].string(), "calibration");
    EXPECT_EQ(report()["checks"].items().size(), 34u);
}

}  // namespace
}  // namespace saturate
