// SPDX-License-Identifier: Apache-2.0
// bench gpu on the CPU, one job, as short as a search can be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "support/run.h"

namespace saturate {
namespace {

TEST(BenchGpuTest, OneJobOnTheCpuEndsInOneFileAndOnePage) {
#ifndef SATURATE_HAS_ENGINE
    GTEST_SKIP() << "built without LibTorch";
#endif
    TemporaryFolder folder;
    Ran ran = run({SATURATE_BINARY, "bench", "gpu", "--device", "cpu", "--job", "window_cnn",
                   "--seconds", "20", "--calibrate", "-o", "b", "--quiet"},
                  {.folder = folder.path()});
    ASSERT_EQ(ran.status, 0) << ran.err;
    std::filesystem::path file = folder.path() / "b/bench-gpu.json";
    Json bench = Json::parse(read_file(file, 1 << 24, "a benchmark"), file.string());
    EXPECT_EQ(bench["device"].string(), "cpu");
    EXPECT_TRUE(bench["card"].is_null());
    EXPECT_TRUE(bench["selftest"]["passed"].boolean().value_or(false));
    EXPECT_TRUE(bench["selftest"]["rates"].is_object());
    ASSERT_EQ(bench["jobs"].items().size(), 1u);
    const Json& job = bench["jobs"].items()[0];
    EXPECT_EQ(job["job"].string(), "window_cnn");
    EXPECT_TRUE(job["proof"].is_object() || job["without_proof"].string() != "");
    EXPECT_GE(job["foretold"]["likely"].number().value_or(0), 1);
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "b/bench-gpu.html"));
    EXPECT_THAT(ran.out, testing::HasSubstr("nothing is simulated"));
}

}  // namespace
}  // namespace saturate
