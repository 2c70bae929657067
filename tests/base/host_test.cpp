// SPDX-License-Identifier: Apache-2.0
#include "base/host.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace saturate {
namespace {

TEST(HostTest, AThreadBoundToOneCpuHasOne) {
    int before = affinity_cores(), bound = 0;
    EXPECT_GE(before, 1);
    std::thread([&] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
        if (::sched_setaffinity(0, sizeof one, &one) == 0) bound = affinity_cores();
    }).join();
    EXPECT_EQ(bound, 1);
    EXPECT_EQ(affinity_cores(), before);
}

TEST(HostTest, TheMachineHasAName) { EXPECT_NE(host_name(), ""); }

}  // namespace
}  // namespace saturate
