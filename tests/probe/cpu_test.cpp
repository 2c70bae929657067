// SPDX-License-Identifier: Apache-2.0
// Cores and features, on kernel files of the test's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_roots.h"

namespace saturate {
namespace {

constexpr const char* kOnline = "sys/devices/system/cpu/online";

FakeRoots& eight_cores(FakeRoots& fake) {
    return fake.with(kOnline, "0-7\n")
        .with("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-7\n");
}

TEST(CpuTest, AffinityCountsOnlyCoresThatAreOnline) {
    FakeRoots fake;
    fake.with(kOnline, "0-3\n").with("proc/self/status", "Cpus_allowed_list:\t1,3-127\n");
    CpuFacts cpu = probe_cpu(fake.roots());
    EXPECT_EQ(cpu.cores_online, 4);
    EXPECT_EQ(cpu.cores_affinity, 2);
    EXPECT_EQ(cpu.cores_usable, 2);
    EXPECT_EQ(cpu.cores_quota, std::nullopt);
}

TEST(CpuTest, ManyCoresAreCounted) {
    FakeRoots fake;
    fake.with(kOnline, "0-4095\n")
        .with("proc/self/status", "Cpus_allowed_list:\t0-1023,2048-4095\n");
    EXPECT_EQ(probe_cpu(fake.roots()).cores_affinity, 3072);
}

TEST(CpuTest, QuotaOfVersion2LimitsTheCores) {
    FakeRoots fake;
    eight_cores(fake).mount_v2().with("proc/self/cgroup", "0::/\n");
    fake.with("sys/fs/cgroup/cpu.max", "250000 100000\n");
    CpuFacts cpu = probe_cpu(fake.roots());
    EXPECT_EQ(cpu.cores_quota, 2.5);
    EXPECT_EQ(cpu.cores_usable, 2);
}

TEST(CpuTest, QuotaBelowOneCoreLeavesOne) {
    FakeRoots fake;
    eight_cores(fake).mount_v2().with("proc/self/cgroup", "0::/\n");
    fake.with("sys/fs/cgroup/cpu.max", "50000 100000\n");
    CpuFacts cpu = probe_cpu(fake.roots());
    EXPECT_EQ(cpu.cores_quota, 0.5);
    EXPECT_EQ(cpu.cores_usable, 1);
}

TEST(CpuTest, MaxIsNoQuota) {
    FakeRoots fake;
    eight_cores(fake).mount_v2().with("proc/self/cgroup", "0::/a\n");
    fake.with("sys/fs/cgroup/a/cpu.max", "max 100000\n");
    CpuFacts cpu = probe_cpu(fake.roots());
    EXPECT_EQ(cpu.cores_quota, std::nullopt);
    EXPECT_EQ(cpu.cores_usable, 8);
}

TEST(CpuTest, LeastQuotaOnTheWayUpCounts) {
    FakeRoots fake;
    eight_cores(fake).mount_v2().with("proc/self/cgroup", "0::/pod/job/step\n");
    fake.with("sys/fs/cgroup/pod/cpu.max", "300000 100000\n")
        .with("sys/fs/cgroup/pod/job/cpu.max", "600000 100000\n")
        .with("sys/fs/cgroup/pod/job/step/cpu.max", "max 100000\n");
    EXPECT_EQ(probe_cpu(fake.roots()).cores_quota, 3.0);
}

TEST(CpuTest, QuotaOfVersion1LimitsTheCores) {
    FakeRoots fake;
    eight_cores(fake).mount_v1().with("proc/self/cgroup", "4:cpu,cpuacct:/slice/job\n0::/\n");
    fake.with("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
        .with("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
        .with("sys/fs/cgroup/cpu,cpuacct/slice/cpu.cfs_quota_us", "400000\n")
        .with("sys/fs/cgroup/cpu,cpuacct/slice/cpu.cfs_period_us", "100000\n")
        .with("sys/fs/cgroup/cpu,cpuacct/slice/job/cpu.cfs_quota_us", "-1\n")
        .with("sys/fs/cgroup/cpu,cpuacct/slice/job/cpu.cfs_period_us", "100000\n");
    CpuFacts cpu = probe_cpu(fake.roots());
    EXPECT_EQ(cpu.cores_quota, 4.0);
    EXPECT_EQ(cpu.cores_usable, 4);
}

TEST(CpuTest, GroupOutsideTheMountFallsBackToItsRoot) {
    for (const char* group : {"0::/kubepods/pod1/abc\n", "0::/../../other\n", "garbage", ""}) {
        FakeRoots fake;
        eight_cores(fake).mount_v2().with("proc/self/cgroup", group);
        fake.with("sys/fs/cgroup/cpu.max", "200000 100000\n");
        EXPECT_EQ(probe_cpu(fake.roots()).cores_quota, 2.0) << group;
    }
}

TEST(CpuTest, GroupIsSoughtBelowTheRootThatTheMountShows) {
    FakeRoots fake;
    eight_cores(fake)
        .mount_v1("/docker/abc")
        .with("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc/in\n");
    fake.with("sys/fs/cgroup/cpu,cpuacct/in/cpu.cfs_quota_us", "150000\n")
        .with("sys/fs/cgroup/cpu,cpuacct/in/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(probe_cpu(fake.roots()).cores_quota, 1.5);
}

TEST(CpuTest, WithoutATableOfMountsTheUsualPlacesAreTried) {
    FakeRoots two;
    eight_cores(two).with("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    two.with("sys/fs/cgroup/cpu.max", "200000 100000\n");
    EXPECT_EQ(probe_cpu(two.roots()).cores_quota, 2.0);
    FakeRoots one;
    eight_cores(one).with("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
    one.with("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(probe_cpu(one.roots()).cores_quota, 3.0);
}

TEST(CpuTest, GarbageIsNoQuota) {
    for (const char* text : {"", "\n", "max", "abc 100000", "100000 0", "-5 100000", "1e9 100000",
                             "100000", "99999999999999999999 100000", "\x01\x02 \xff"}) {
        FakeRoots fake;
        eight_cores(fake).mount_v2().with("proc/self/cgroup", "0::/\n");
        fake.with("sys/fs/cgroup/cpu.max", text);
        CpuFacts cpu = probe_cpu(fake.roots());
        EXPECT_EQ(cpu.cores_quota, std::nullopt) << text;
        EXPECT_EQ(cpu.cores_usable, 8) << text;
    }
}

TEST(CpuTest, MissingAndBrokenListsAskTheKernelInstead) {
    for (const char* list : {"", "x", "3-1", "-2", "0-99999999999", "1,,2"}) {
        FakeRoots fake;
        fake.with(kOnline, list)
            .with("proc/self/status", std::string("Cpus_allowed_list:\t") + list);
        fake.with("proc/cpuinfo",
                  "processor\t: 0\nmodel name\t: A\n\nprocessor\t: 1\nmodel name\t: A\n");
        CpuFacts cpu = probe_cpu(fake.roots());
        EXPECT_EQ(cpu.cores_online, 2) << list;
        EXPECT_GE(cpu.cores_affinity, 1) << list;
        EXPECT_GE(cpu.cores_usable, 1) << list;
        EXPECT_LE(cpu.cores_usable, 2) << list;
    }
    FakeRoots nothing;
    CpuFacts cpu = probe_cpu(nothing.roots());
    EXPECT_GE(cpu.cores_usable, 1);
    EXPECT_FALSE(cpu.features_known);
    EXPECT_EQ(cpu.model, "");
}

TEST(CpuTest, FeaturesThatMatterAreTakenFromTheFlags) {
    FakeRoots intel;
    intel.with("proc/cpuinfo",
               "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8480+\n"
               "flags\t\t: fpu avx avx2 avx512f avx512_bf16 amx_tile amx_bf16 avx2x\n");
    CpuFacts cpu = probe_cpu(intel.roots());
    EXPECT_EQ(cpu.model, "Intel(R) Xeon(R) Platinum 8480+");
    EXPECT_THAT(cpu.features, testing::ElementsAre("avx", "avx2", "avx512f", "avx512_bf16",
                                                   "amx_tile", "amx_bf16"));
    EXPECT_TRUE(cpu.features_known);
    EXPECT_TRUE(cpu.has("amx_bf16"));
    EXPECT_FALSE(cpu.has("sve"));
    FakeRoots arm;
    arm.with("proc/cpuinfo",
             "processor\t: 0\nFeatures\t: fp asimd sve bf16 i8mm\nCPU implementer\t: 0x41\n"
             "CPU part\t: 0xd4f\n");
    cpu = probe_cpu(arm.roots());
    EXPECT_EQ(cpu.model, "Arm, implementer 0x41 part 0xd4f");
    EXPECT_THAT(cpu.features, testing::ElementsAre("asimd", "i8mm", "bf16", "sve"));
}

TEST(CpuTest, ThisMachineHasAtLeastOneCore) {
    CpuFacts cpu = probe_cpu();
    EXPECT_GE(cpu.cores_usable, 1);
    EXPECT_LE(cpu.cores_usable, cpu.cores_online);
}

}  // namespace
}  // namespace saturate
