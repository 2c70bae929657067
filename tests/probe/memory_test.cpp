// SPDX-License-Identifier: Apache-2.0
// Memory and its limit, on kernel files of the test's own.
#include <gtest/gtest.h>

#include "fake_roots.h"

namespace saturate {
namespace {

constexpr std::uint64_t kGiB = 1024ull * 1024 * 1024;

// 16 GiB, of which 12 are available.
FakeRoots& sixteen_gib(FakeRoots& fake) {
    return fake.with("proc/meminfo",
                     "MemTotal:       16777216 kB\nMemFree:  1 kB\nMemAvailable:   12582912 kB\n");
}

TEST(MemoryTest, WithoutALimitTheTotalIsUsable) {
    FakeRoots fake;
    sixteen_gib(fake);
    MemoryFacts memory = probe_memory(fake.roots());
    EXPECT_EQ(memory.total_bytes, 16 * kGiB);
    EXPECT_EQ(memory.available_bytes, 12 * kGiB);
    EXPECT_EQ(memory.limit_bytes, std::nullopt);
    EXPECT_EQ(memory.usable_bytes(), 16 * kGiB);
}

TEST(MemoryTest, LeastLimitOfVersion2OnTheWayUpCounts) {
    FakeRoots fake;
    sixteen_gib(fake).mount_v2().with("proc/self/cgroup", "0::/pod/job\n");
    fake.with("sys/fs/cgroup/pod/memory.max", "4294967296\n")
        .with("sys/fs/cgroup/pod/memory.current", "3221225472\n")
        .with("sys/fs/cgroup/pod/memory.stat", "anon 5\ninactive_file 1073741824\n")
        .with("sys/fs/cgroup/pod/job/memory.max", "max\n");
    MemoryFacts memory = probe_memory(fake.roots());
    EXPECT_EQ(memory.limit_bytes, 4 * kGiB);
    EXPECT_EQ(memory.usable_bytes(), 4 * kGiB);
    EXPECT_EQ(memory.available_bytes, 2 * kGiB);  // 4 less 3 used, of which 1 is cache
}

TEST(MemoryTest, LimitOfVersion1Counts) {
    FakeRoots fake;
    sixteen_gib(fake).mount_v1().with("proc/self/cgroup", "5:memory:/job\n");
    fake.with("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
        .with("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
    EXPECT_EQ(probe_memory(fake.roots()).limit_bytes, 2 * kGiB);
}

TEST(MemoryTest, LimitAboveTheVisibleTreeOfVersion1Counts) {
    FakeRoots fake;
    sixteen_gib(fake).mount_v1("/docker/x").with("proc/self/cgroup", "5:memory:/docker/x\n");
    fake.with("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
        .with("sys/fs/cgroup/memory/memory.stat",
              "cache 1\nhierarchical_memory_limit 1073741824\n");
    EXPECT_EQ(probe_memory(fake.roots()).limit_bytes, 1 * kGiB);
}

TEST(MemoryTest, LimitNotBelowTheTotalIsNone) {
    for (const char* text : {"17179869184\n", "9223372036854771712\n", "max\n", "0\n", "-1\n", "x",
                             "", "99999999999999999999999\n"}) {
        FakeRoots fake;
        sixteen_gib(fake).mount_v2().with("proc/self/cgroup", "0::/\n");
        fake.with("sys/fs/cgroup/memory.max", text);
        EXPECT_EQ(probe_memory(fake.roots()).limit_bytes, std::nullopt) << text;
    }
}

TEST(MemoryTest, UsageAboveTheLimitLeavesNothingAvailable) {
    FakeRoots fake;
    sixteen_gib(fake).mount_v2().with("proc/self/cgroup", "0::/\n");
    fake.with("sys/fs/cgroup/memory.max", "1073741824\n")
        .with("sys/fs/cgroup/memory.current", "2147483648\n");
    EXPECT_EQ(probe_memory(fake.roots()).available_bytes, 0u);
}

TEST(MemoryTest, MissingAndBrokenFilesAskTheKernelInstead) {
    for (const char* text :
         {"", "MemTotal: many kB\n", "MemTotal:\n", "MemTotal: 99999999999999999999 kB\n",
          "MemTotal: 9223372036854775807 kB\n"}) {
        FakeRoots fake;
        fake.with("proc/meminfo", text);
        MemoryFacts memory = probe_memory(fake.roots());
        EXPECT_GT(memory.total_bytes, 0u) << text;
        EXPECT_LT(memory.total_bytes, 1ull << 60) << text;
        EXPECT_EQ(memory.available_bytes, std::nullopt) << text;
    }
}

}  // namespace
}  // namespace saturate
