// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/run.h"

namespace saturate {
namespace {

TEST(DataTest, MakesATableWhereTheConfigurationLooksForIt) {
    TemporaryFolder folder;
    Ran ran = run({SATURATE_BINARY, "data", "make", "window_cnn", "--samples", "100"},
                  {.folder = folder.path()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_TRUE(ran.out.starts_with("data/air_quality.csv: 100 rows, ")) << ran.out;
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "data/air_quality.csv"));
}

TEST(DataTest, JsonSaysWhatWasMade) {
    TemporaryFolder folder;
    Ran ran = run({SATURATE_BINARY, "data", "make", "classifier", "--samples", "20", "-o", "c",
                   "--seed", "3", "--json"},
                  {.folder = folder.path()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    Json said = Json::parse(ran.out, "stdout");
    EXPECT_EQ(said["schema"].integer(), 1);
    EXPECT_EQ(said["path"].string(), "c");
    EXPECT_EQ(said["training"].integer(), 18);
    EXPECT_EQ(said["validation"].integer(), 2);
    EXPECT_GT(said["bytes"].integer().value_or(0), 20 * 1000);
}

TEST(DataTest, AnIncompleteCommandIsExplained) {
    Ran ran = run({SATURATE_BINARY, "data", "mak"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: data: unexpected argument \"mak\"\n"
              "  expected: saturate data make JOB; JOB is one of restoration, locator, classifier, "
              "sequence, window_cnn\n"
              "  fix:      saturate data make classifier\n");
    EXPECT_THAT(run({SATURATE_BINARY, "data", "make"}).err,
                testing::StartsWith("error: data make needs the name of a job\n"));
}

}  // namespace
}  // namespace saturate
