// SPDX-License-Identifier: Apache-2.0
#include "project/config_use.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

// For one scope; other tests of this process find it as it was.
class Variable {
  public:
    Variable(const char* name, const fs::path& value) : name_(name) {
        if (const char* was = std::getenv(name)) was_ = was;
        ::setenv(name, value.c_str(), 1);
    }
    ~Variable() { was_ ? ::setenv(name_, was_->c_str(), 1) : ::unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

  private:
    const char* name_;
    std::optional<std::string> was_;
};

class ProjectFolderTest : public testing::Test {
  protected:
    ~ProjectFolderTest() override { fs::current_path(was_); }
    fs::path was_ = fs::current_path();
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
    Variable home("HOME", home_ / "user");
    fs::current_path(home_ / "user");
    EXPECT_EQ(project_folder("project/a.yaml"), home_ / "user/project");
    fs::current_path(home_);
    EXPECT_EQ(project_folder("user/project/a.yaml"), home_ / "user/project");
}

TEST_F(ProjectFolderTest, IsNeverTheFolderOfTemporaryFiles) {
    fs::create_directories(home_ / "project");
    Variable temporary("TMPDIR", home_);
    fs::current_path(home_);
    EXPECT_EQ(project_folder("project/a.yaml"), home_ / "project");
}

TEST_F(ProjectFolderTest, MayHoldTheWordThatStandsForTheFile) {
    fs::create_directories(home_ / "{config}");
    fs::current_path(home_);
    std::ofstream("{config}/a.yaml") << "batch_size: 8\n";
    std::ofstream("train.py") << "import sys\n";
    ConfigUse use = read_config_use("{config}/a.yaml", {"python3", "train.py", "{config}"});
    EXPECT_EQ(use.problem, "");
}

}  // namespace
}  // namespace saturate
