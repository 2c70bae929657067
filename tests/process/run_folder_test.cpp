// SPDX-License-Identifier: Apache-2.0
#include "process/run_folder.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/file.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
  protected:
    RunFolderTest() : before_(fs::current_path()) { fs::current_path(folder_.path()); }
    ~RunFolderTest() override { fs::current_path(before_); }
    TemporaryFolder folder_;
    fs::path before_;
};

TEST_F(RunFolderTest, RunsOfOneSecondHaveFoldersOfTheirOwn) {
    std::set<fs::path> folders;
    for (int i = 0; i < 20; ++i) folders.insert(new_run_folder("train"));
    EXPECT_EQ(folders.size(), 20u);
    for (const fs::path& folder : folders) {
        EXPECT_TRUE(fs::is_empty(folder));
        EXPECT_EQ(folder.parent_path(), "saturate-runs");
    }
    EXPECT_EQ(read_file("saturate-runs/.gitignore", 100, "a file"), "*\n");
}

TEST_F(RunFolderTest, WhereNoneCanBeMadeTheUserIsToldOfAnother) {
    folder_.file("saturate-runs", "a file in the way");
    EXPECT_THROW((void)new_run_folder("train"), UserError);
}

}  // namespace
}  // namespace saturate
