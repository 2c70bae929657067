// SPDX-License-Identifier: Apache-2.0
#include "process/thread_wait.h"

#include <gtest/gtest.h>

#include <map>

namespace saturate {
namespace {

using Added = std::vector<std::pair<std::string, std::string>>;

Added added(std::optional<double> cpu_percent,
            const std::map<std::string, std::string>& environment = {}) {
    HostSample resting;
    resting.cpu_percent = cpu_percent;
    resting.cores = 2;
    auto read = [&](const std::string& name) -> std::optional<std::string> {
        auto found = environment.find(name);
        return found == environment.end() ? std::nullopt : std::optional(found->second);
    };
    return thread_wait(read, resting);
}

TEST(ThreadWaitTest, BesideABusyCoreThreadsSleepSooner) {
    const Added kSooner{{"GOMP_SPINCOUNT", "1000"}};
    EXPECT_EQ(added(50), kSooner);
    EXPECT_EQ(added(100), kSooner);
    EXPECT_EQ(added(5), Added()) << "on a free machine spinning is faster";
    EXPECT_EQ(added({}), Added()) << "what cannot be read is not guessed";
}

TEST(ThreadWaitTest, TheUsersWordCounts) {
    EXPECT_EQ(added(50, {{"GOMP_SPINCOUNT", "7"}}), Added());
    EXPECT_EQ(added(50, {{"OMP_WAIT_POLICY", "active"}}), Added());
}

TEST(ThreadWaitTest, RanksAreEachOthersBusyCores) {
    EXPECT_EQ(added(100, {{"RANK", "0"},
                          {"WORLD_SIZE", "2"},
                          {"LOCAL_RANK", "0"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", "29500"}}),
              Added());
}

}  // namespace
}  // namespace saturate
