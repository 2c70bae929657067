// SPDX-License-Identifier: Apache-2.0
// diagnose --html as a user runs it.
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/run.h"

namespace saturate {
namespace {

const std::string kTrace = SATURATE_SOURCE_DIR "/tests/golden/diagnosis/loader_bound/trace.json";

TEST(DiagnoseHtmlTest, WritesThePageBesideTheAnswer) {
    TemporaryFolder folder;
    std::string page = folder.path() / "page.html";
    Ran plain = run({SATURATE_BINARY, "diagnose", kTrace});
    Ran ran = run({SATURATE_BINARY, "diagnose", kTrace, "--html", page});
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.out, plain.out);
    EXPECT_EQ(ran.err, "the page is " + page + "\n");
    std::string text = read_file(page, 1 << 20, "a page");
    EXPECT_NE(text.find("id=\"F01\""), std::string::npos);
    EXPECT_NE(text.find("<canvas"), std::string::npos);
}

TEST(DiagnoseHtmlTest, NamesAFolderThatIsNotThere) {
    TemporaryFolder folder;
    std::string page = folder.path() / "none" / "page.html";
    Ran ran = run({SATURATE_BINARY, "diagnose", kTrace, "--html", page});
    EXPECT_EQ(ran.status, 2);
    EXPECT_NE(ran.err.find(page), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace saturate
