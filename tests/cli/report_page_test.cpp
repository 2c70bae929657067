// SPDX-License-Identifier: Apache-2.0
// The page of report and the live page of serve in a browser: tests/report/report_page_test.py says
// what is looked at.
#include <gtest/gtest.h>

#include "support/run.h"

namespace saturate {
namespace {

Ran look_at(const std::string& kind, const TemporaryFolder& folder) {
    return run({"python3", "-B", SATURATE_SOURCE_DIR "/tests/report/report_page_test.py", kind,
                SATURATE_BINARY, folder.path()});
}

TEST(ReportPageTest, TheReportHoldsInABrowser) {
    if (run({"sh", "-c", "command -v chromium"}).status != 0)
        GTEST_SKIP() << "chromium is not installed";
    TemporaryFolder folder;
    Ran ran = look_at("file", folder);
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
}

TEST(ReportPageTest, TheLivePageFollowsARunInABrowser) {
    if (run({"sh", "-c", "command -v chromium"}).status != 0)
        GTEST_SKIP() << "chromium is not installed";
    TemporaryFolder folder;
    Ran ran = look_at("live", folder);
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
}

}  // namespace
}  // namespace saturate
