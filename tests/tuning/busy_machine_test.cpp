// SPDX-License-Identifier: Apache-2.0
#include "tuning/busy_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saturate {
namespace {

std::string said(double cpu_percent, int running) {
    HostSample sample;
    sample.cpu_percent = cpu_percent;
    sample.cores = 2;
    sample.running = running;
    return busy_machine(sample);
}

TEST(BusyMachineTest, SaysThatOtherWorkTakesTheCores) {
    EXPECT_EQ(said(3, 1), "");
    EXPECT_THAT(said(50, 2), testing::StartsWith("other work uses 1.0 of the 2 cores of this"));
    EXPECT_THAT(said(98, 6), testing::HasSubstr("2.0 of the 2 cores of this machine, and 3 tasks "
                                                "wait for a core"));
    EXPECT_EQ(busy_machine({}), "") << "what cannot be read is not guessed";
}

TEST(BusyMachineTest, OfAWatchedRunItsOwnWorkDoesNotCount) {
    HostSample sample{.cpu_percent = 95, .cores = 2, .tree = TreeSample{.cpu_percent = 180}};
    std::vector<HostSample> watched{HostSample{}, sample, sample};
    EXPECT_EQ(busy_beside(watched), "");
    watched[1].tree->cpu_percent = watched[2].tree->cpu_percent = 40;
    EXPECT_THAT(busy_beside(watched),
                testing::StartsWith("other work uses 1.5 of the 2 cores of this machine: "));
    EXPECT_EQ(busy_beside({}), "");
}

TEST(BusyMachineTest, ARunThatUsesNoCpuAnyMoreIsIdle) {
    std::vector<HostSample> watched{{.time_ns = 1, .tree = TreeSample{.cpu_percent = 180}},
                                    {.time_ns = 5, .tree = TreeSample{.cpu_percent = 2}},
                                    {.time_ns = 9, .tree = TreeSample{.cpu_percent = 1}}};
    EXPECT_TRUE(is_idle_from(1, watched));
    EXPECT_FALSE(is_idle_from(0, watched));
    EXPECT_FALSE(is_idle_from(9, watched)) << "nothing was sampled since";
}

}  // namespace
}  // namespace saturate
