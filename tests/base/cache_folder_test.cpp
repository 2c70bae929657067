// SPDX-License-Identifier: Apache-2.0
#include "base/cache_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace saturate {
namespace {

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
    EXPECT_EQ(user_cache_folder(), "/tmp/saturate");
    ::setenv("HOME", "/home/a", 1);
    EXPECT_EQ(user_cache_folder(), "/home/a/.cache/saturate");
    ::setenv("XDG_CACHE_HOME", "/xdg", 1);
    EXPECT_EQ(user_cache_folder(), "/xdg/saturate");
    ::setenv("SATURATE_CACHE", "/own", 1);
    EXPECT_EQ(user_cache_folder(), "/own");
}

TEST_F(CacheFolderTest, AnEmptyVariableIsNone) {
    for (const char* name : {"SATURATE_CACHE", "XDG_CACHE_HOME"}) ::setenv(name, "", 1);
    ::setenv("HOME", "/home/a", 1);
    EXPECT_EQ(user_cache_folder(), "/home/a/.cache/saturate");
}

}  // namespace
}  // namespace saturate
