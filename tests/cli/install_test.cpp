// SPDX-License-Identifier: Apache-2.0
// `cmake --install` gives programs that run from elsewhere, without the checkout's build folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/run.h"

namespace saturate {
namespace {

TEST(InstallTest, TheInstalledProgramsRunFromElsewhere) {
    TemporaryFolder folder;
    std::string prefix = folder.path() / "prefix";
    std::string build = std::filesystem::path(SATURATE_BINARY).parent_path();
    Ran installed = run({"cmake", "--install", build, "--prefix", prefix});
    ASSERT_EQ(installed.status, 0) << installed.err;
    folder.file("job.yaml", "num_workers: 0\n");
    RunWhere there{.folder = folder.path()};
    Ran ran = run(
        {prefix + "/bin/saturate", "optimize", "--config", "job.yaml", "--gpu", "A100 80GB SXM4"},
        there);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, testing::HasSubstr("changes written to job_gpu_optimized.yaml"));
    Ran selftest = run({prefix + "/bin/saturate", "selftest"}, there);
#ifdef SATURATE_HAS_ENGINE
    EXPECT_EQ(selftest.status, 0) << selftest.err;
    EXPECT_THAT(selftest.out, testing::HasSubstr("ok      gradient of x^3"));
#else
    EXPECT_EQ(selftest.status, 3);
    EXPECT_EQ(selftest.err,
              "error: selftest needs LibTorch, and this build is without it\n"
              "  expected: a build with LibTorch\n"
              "  fix:      ./saturate builds one; or cmake --preset release -DSATURATE_TORCH=ON\n");
#endif
}

}  // namespace
}  // namespace saturate
