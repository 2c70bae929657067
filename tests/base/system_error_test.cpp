// SPDX-License-Identifier: Apache-2.0
#include "base/system_error.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace saturate {
namespace {

namespace fs = std::filesystem;

TEST(SystemErrorTest, APathThatCannotBeUsedIsTheUsersToMend) {
    fs::filesystem_error error("status", "a/loop",
                               std::make_error_code(std::errc::too_many_symbolic_link_levels));
    EXPECT_TRUE(is_users(error));
    EXPECT_EQ(system_problem(error).text(),
              "error: a/loop: cannot be used: Too many levels of symbolic links\n"
              "  expected: a path that exists and that you can use");
    fs::filesystem_error full("write", "a", std::make_error_code(std::errc::no_space_on_device));
    EXPECT_FALSE(is_users(full));
}

// What std::thread throws where a limit is reached: as many workers as the limit does not allow.
TEST(SystemErrorTest, ALimitOfThreadsIsTheMachines) {
    std::system_error error(std::make_error_code(std::errc::resource_unavailable_try_again),
                            "thread");
    EXPECT_FALSE(is_users(error));
    EXPECT_EQ(system_problem(error).text(),
              "error: cannot start another thread or process: Resource temporarily unavailable\n"
              "  expected: limits of this user and container that allow one more\n"
              "  fix:      fewer workers, or a higher limit (ulimit -u, pids.max)");
}

}  // namespace
}  // namespace saturate
