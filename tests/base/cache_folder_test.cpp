// SPDX-License-Identifier: Apache-2.0
#include "base/cache_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

class CacheFolderTest : public testing::Test {
  protected:
    CacheFolderTest() {
        for (const char* name : {"SATURATE_CACHE", "XDG_CACHE_HOME", "HOME", "TMPDIR"}) {
            const char* value = std::getenv(name);
            before_[name] = value ? std::optional<std::string>(value) : std::nullopt;
            ::unsetenv(name);
        }
    }
    ~CacheFolderTest() override {
        for (const auto& [name, value] : before_)
            value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }

  private:
    std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(CacheFolderTest, TheNearestVariableWins) {
    TemporaryFolder folder;
    ::setenv("HOME", (folder.path() / "home").c_str(), 1);
    EXPECT_EQ(user_cache_folder(), folder.path() / "home/.cache/saturate");
    ::setenv("XDG_CACHE_HOME", (folder.path() / "xdg").c_str(), 1);
    EXPECT_EQ(user_cache_folder(), folder.path() / "xdg/saturate");
    ::setenv("SATURATE_CACHE", (folder.path() / "own").c_str(), 1);
    EXPECT_EQ(user_cache_folder(), folder.path() / "own");
}

TEST_F(CacheFolderTest, AnEmptyVariableIsNone) {
    TemporaryFolder folder;
    for (const char* name : {"SATURATE_CACHE", "XDG_CACHE_HOME"}) ::setenv(name, "", 1);
    ::setenv("HOME", folder.path().c_str(), 1);
    EXPECT_EQ(user_cache_folder(), folder.path() / ".cache/saturate");
}

TEST_F(CacheFolderTest, IsMadePrivateAndClosedToOthers) {
    TemporaryFolder folder;
    fs::path own = folder.path() / "own";
    ::setenv("SATURATE_CACHE", own.c_str(), 1);
    EXPECT_EQ(user_cache_folder(), own);
    EXPECT_EQ(fs::status(own).permissions(), fs::perms(0700));
    fs::permissions(own, fs::perms(0777));
    EXPECT_EQ(user_cache_folder(), own);
    EXPECT_EQ(fs::status(own).permissions(), fs::perms(0755));
}

TEST_F(CacheFolderTest, AFolderOfAnotherUserIsNotOurs) {
    TemporaryFolder folder;
    uid_t self = ::geteuid(), other = self + 12345;
    fs::permissions(folder.path(), fs::perms(0755));
    EXPECT_TRUE(is_own_folder(folder.path(), self));
    EXPECT_TRUE(is_own_folder(folder.path() / "not/there", self));
    // What root owns serves everybody.
    EXPECT_EQ(is_own_folder(folder.path(), other), self == 0);
    fs::permissions(folder.path(), fs::perms(0777));
    EXPECT_FALSE(is_own_folder(folder.path(), other));
    EXPECT_FALSE(is_own_folder(folder.path() / "not/there", other));
    fs::permissions(folder.path(), fs::perms(0700));
    fs::create_symlink("/nowhere/at/all", folder.path() / "link");
    EXPECT_FALSE(is_own_folder(folder.path() / "link", self));
    folder.file("file", "");
    EXPECT_FALSE(is_own_folder(folder.path() / "file", self));
}

// Somebody else's folder under the name that would be ours: as root, who can make one.
TEST_F(CacheFolderTest, AForeignFolderIsPassedOver) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
    TemporaryFolder folder;
    fs::path foreign = folder.path() / "foreign", temporary = folder.path() / "tmp";
    fs::create_directories(foreign);
    ASSERT_EQ(::chown(foreign.c_str(), 12345, 12345), 0);
    fs::create_directories(temporary / "saturate-0");
    ASSERT_EQ(::chown((temporary / "saturate-0").c_str(), 12345, 12345), 0);
    for (const char* name : {"SATURATE_CACHE", "XDG_CACHE_HOME", "HOME"})
        ::setenv(name, foreign.c_str(), 1);
    ::setenv("TMPDIR", temporary.c_str(), 1);
    fs::path chosen = user_cache_folder();
    EXPECT_NE(chosen, foreign);
    EXPECT_EQ(chosen.parent_path(), temporary);
    EXPECT_NE(chosen.filename(), "saturate-0");
    EXPECT_EQ(fs::status(chosen).permissions(), fs::perms(0700));
}

}  // namespace
}  // namespace saturate
