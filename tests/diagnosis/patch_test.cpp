// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/patch.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

const Json kSite = Json::object({{"file", "train.py"}, {"line", 2}});

// A call that ends at (line, column); `keywords` as JSON text.
Json call(const std::vector<std::string>& lines, int end_line, int end_column,
          const std::string& keywords = "{}", bool spreads = false) {
    return Json::object({{"end_line", end_line},
                         {"end_column", end_column},
                         {"spreads", spreads},
                         {"keywords", Json::parse(keywords, "keywords")},
                         {"first_line", 1},
                         {"lines", Json::array_of(lines)}});
}

TEST(PatchTest, AddsAKeywordOnTheCallsLine) {
    std::string line = "loader = DataLoader(data, batch_size=8)";
    EXPECT_EQ(keyword_patch(kSite, call({"a = 1", line, "b = 2"}, 2, static_cast<int>(line.size())),
                            {{"num_workers", "4"}, {"pin_memory", "True"}}),
              "--- train.py\n+++ train.py\n@@ -1,3 +1,3 @@\n a = 1\n-loader = DataLoader(data, "
              "batch_size=8)\n"
              "+loader = DataLoader(data, batch_size=8, num_workers=4, pin_memory=True)\n b = 2\n");
}

TEST(PatchTest, AddsTheFirstArgumentAndBehindATrailingComma) {
    auto patched = [](const std::string& line) {
        std::string patch =
            keyword_patch(kSite, call({line}, 1, static_cast<int>(line.size())), {{"a", "1"}});
        return patch.substr(patch.rfind('+') + 1);
    };
    EXPECT_EQ(patched("optimizer.zero_grad()"), "optimizer.zero_grad(a=1)\n");
    EXPECT_EQ(patched("f(x,)"), "f(x, a=1)\n");
    EXPECT_EQ(patched("f(x, )"), "f(x, a=1 )\n");
    EXPECT_EQ(patched("f(x )"), "f(x, a=1 )\n");
}

TEST(PatchTest, ReplacesAValueAndAddsBehindIt) {
    std::string line = "x = DataLoader(d, num_workers=0)";
    std::string place = R"({"num_workers":{"line":2,"column":30,"end_line":2,"end_column":31}})";
    EXPECT_EQ(keyword_patch(kSite, call({"a", line}, 2, 32, place),
                            {{"num_workers", "12"}, {"persistent_workers", "True"}}),
              "--- train.py\n+++ train.py\n@@ -1,2 +1,2 @@\n a\n-x = DataLoader(d, num_workers=0)\n"
              "+x = DataLoader(d, num_workers=12, persistent_workers=True)\n");
}

TEST(PatchTest, AddsALineWhereTheCallHasOnePerArgument) {
    EXPECT_EQ(
        keyword_patch(kSite, call({"x = DataLoader(", "    d,", "    batch_size=8,", ")"}, 4, 1),
                      {{"num_workers", "4"}}),
        "--- train.py\n+++ train.py\n@@ -1,4 +1,5 @@\n x = DataLoader(\n     d,\n     "
        "batch_size=8,\n"
        "+    num_workers=4,\n )\n");
    EXPECT_EQ(
        keyword_patch(kSite, call({"x = DataLoader(", "    d", ")"}, 3, 1), {{"num_workers", "4"}}),
        "--- train.py\n+++ train.py\n@@ -1,3 +1,4 @@\n x = DataLoader(\n-    d\n+    d,\n+    "
        "num_workers=4\n )\n");
}

TEST(PatchTest, GivesNoneWhereTheEditIsNotMechanical) {
    std::string line = "x = DataLoader(d, **options)";
    EXPECT_EQ(keyword_patch(kSite, call({line}, 1, static_cast<int>(line.size()), "{}", true),
                            {{"num_workers", "4"}}),
              "");
    EXPECT_EQ(keyword_patch(kSite, Json(), {{"num_workers", "4"}}), "");
    EXPECT_EQ(
        keyword_patch(kSite, call({"x = f(", "    d  # last", ")"}, 3, 1), {{"num_workers", "4"}}),
        "");
    EXPECT_EQ(keyword_patch(kSite, call({"short"}, 7, 9), {{"num_workers", "4"}}), "");
}

}  // namespace
}  // namespace saturate
