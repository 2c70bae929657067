// SPDX-License-Identifier: Apache-2.0
#include "project/config_use.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

// One test is one process (gtest_discover_tests), so what it changes of it is nobody else's.
class ProjectFolderTest : public testing::Test {
  protected:
    TemporaryFolder folder_;
    fs::path home_ = fs::canonical(folder_.path());
};

TEST_F(ProjectFolderTest, IsWhereTheCommandRuns) {
    fs::create_directories(home_ / "project/configs");
    fs::current_path(home_ / "project");
    EXPECT_EQ(project_folder("configs/a.yaml"), home_ / "project");
}

TEST_F(ProjectFolderTest, IsNeverTheHomeFolderNorWhatIsAboveIt) {
    fs::create_directories(home_ / "user/project");
    ::setenv("HOME", (home_ / "user").c_str(), 1);
    fs::current_path(home_ / "user");
    EXPECT_EQ(project_folder("project/a.yaml"), home_ / "user/project");
    fs::current_path(home_);
    EXPECT_EQ(project_folder("user/project/a.yaml"), home_ / "user/project");
}

TEST_F(ProjectFolderTest, IsNeverTheFolderOfTemporaryFiles) {
    fs::create_directories(home_ / "project");
    ::setenv("TMPDIR", home_.c_str(), 1);
    fs::current_path(home_);
    EXPECT_EQ(project_folder("project/a.yaml"), home_ / "project");
}

}  // namespace
}  // namespace saturate
