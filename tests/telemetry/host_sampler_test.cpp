// SPDX-License-Identifier: Apache-2.0
// The host's side against a folder that looks like /proc.
#include "telemetry/host_sampler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run.h"

namespace saturate {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

class HostSamplerTest : public testing::Test {
  protected:
    HostSamplerTest() {
        cpu(0, 0, 0);
        folder.file("meminfo", "MemTotal:       1000 kB\nMemFree: 5 kB\nMemAvailable:    600 kB\n");
        std::filesystem::create_directories(folder.path() / "self/ns");
        std::filesystem::create_symlink("pid:[4026531836]", folder.path() / "self/ns/pid");
    }

    void cpu(int busy, int idle, int waiting) {
        folder.file("stat", fmt::format("cpu  {} 0 0 {} {} 0 0 0 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\n"
                                        "cpu1 1 0 0 0 0 0 0 0 0 0\nctxt 5\nprocs_running 3\n",
                                        busy, idle, waiting));
    }

    struct Fake {
        int pid = 0, parent = 1;
        std::string name = "python3";
        int ticks = 0, io_ticks = 0, start = 100;
        std::string command = {};
        std::uint64_t read_bytes = 0;
        std::uint64_t waited_ns = 0;
    };
    void process(const Fake& fake) {
        std::string stat = fmt::format(
            "{} ({}) S {} 0 0 0 0 0 0 0 0 0 {} 0 0 0 20 0 1 0 {} 4096 10 0 0 0 0 0 0 0 0 0 "
            "0 0 0 0 17 0 0 0 {} 0 0\n",
            fake.pid, fake.name, fake.parent, fake.ticks, fake.start, fake.io_ticks);
        folder.file(fmt::format("{}/stat", fake.pid), stat);
        folder.file(fmt::format("{0}/task/{0}/stat", fake.pid), stat);
        folder.file(fmt::format("{0}/task/{0}/schedstat", fake.pid),
                    fmt::format("5 {} 7\n", fake.waited_ns));
        folder.file(fmt::format("{}/cmdline", fake.pid), fake.command);
        folder.file(fmt::format("{}/io", fake.pid),
                    fmt::format("rchar: {}\nwchar: 0\nread_bytes: {}\n", fake.read_bytes * 2,
                                fake.read_bytes));
    }

    HostSampler sampler(std::optional<std::int64_t> pid = {}) {
        return HostSampler({.proc = folder.path(),
                            .watched_pid = pid,
                            .ticks_per_second = 100,
                            .page_bytes = 4096});
    }

    TemporaryFolder folder;
};

TEST_F(HostSamplerTest, SharesAreOfTheTimeSinceTheLastSample) {
    HostSampler host = sampler();
    HostSample first = host.sample(kSecond);
    EXPECT_EQ(first.cpu_percent, std::nullopt);
    EXPECT_EQ(first.cores, 2);
    EXPECT_EQ(first.running, 3);
    EXPECT_EQ(first.memory_total_bytes, 1'024'000u);
    EXPECT_EQ(first.memory_available_bytes, 614'400u);
    EXPECT_FALSE(first.tree);
    cpu(150, 40, 10);
    HostSample second = host.sample(2 * kSecond);
    EXPECT_DOUBLE_EQ(*second.cpu_percent, 75);
    EXPECT_DOUBLE_EQ(*second.io_wait_percent, 5);
}

TEST_F(HostSamplerTest, FollowsATreeAndKnowsLoaderWorkers) {
    process({.pid = 50, .command = std::string("python3\0train.py", 16), .read_bytes = 1000});
    process({.pid = 51, .parent = 50, .name = "pt_data_worker"});
    process({.pid = 52, .parent = 50, .command = std::string("python3\0train.py", 16)});
    process({.pid = 53,
             .parent = 50,
             .command = "python3 -c from multiprocessing.resource_tracker import main"});
    process({.pid = 54, .parent = 51, .name = "sh"});
    process({.pid = 60, .parent = 1});
    HostSampler host = sampler(50);
    HostSample first = host.sample(kSecond);
    ASSERT_TRUE(first.tree);
    EXPECT_EQ(first.tree->processes, 5);
    EXPECT_EQ(first.tree->loader_workers, 2);
    EXPECT_EQ(first.tree->cpu_percent, std::nullopt);
    EXPECT_EQ(first.tree->read_bytes, 0u);
    process({.pid = 50,
             .ticks = 90,
             .io_ticks = 20,
             .command = std::string("python3\0train.py", 16),
             .read_bytes = 5000,
             .waited_ns = 500'000'000});
    process({.pid = 51, .parent = 50, .name = "pt_data_worker", .ticks = 200});
    process({.pid = 60, .parent = 1, .ticks = 10'000});
    HostSample second = host.sample(3 * kSecond);
    EXPECT_DOUBLE_EQ(*second.tree->cpu_percent, 145);
    EXPECT_DOUBLE_EQ(*second.tree->main_thread_percent, 45);
    EXPECT_DOUBLE_EQ(*second.tree->worker_cpu_percent, 50);
    EXPECT_DOUBLE_EQ(*second.tree->io_wait_percent, 10);
    EXPECT_DOUBLE_EQ(*second.tree->run_queue_percent, 25);
    EXPECT_EQ(second.tree->read_bytes, 4000u);
    EXPECT_EQ(second.tree->read_call_bytes, 8000u);
    EXPECT_EQ(second.tree->memory_bytes, 5u * 10 * 4096);
    ASSERT_EQ(second.tree->busiest.size(), 5u);
    EXPECT_EQ(second.tree->busiest[0].name, "pt_data_worker");
}

TEST_F(HostSamplerTest, AProcessThatBeganInBetweenCountsWhole) {
    process({.pid = 50});
    HostSampler host = sampler(50);
    (void)host.sample(kSecond);
    process({.pid = 51, .parent = 50, .ticks = 40});
    EXPECT_DOUBLE_EQ(*host.sample(2 * kSecond).tree->cpu_percent, 40);
}

TEST_F(HostSamplerTest, SaysWhenTheProcessEnded) {
    process({.pid = 50});
    HostSampler host = sampler(50);
    EXPECT_FALSE(host.sample(kSecond).tree->ended);
    std::filesystem::remove_all(folder.path() / "50");
    HostSample gone = host.sample(2 * kSecond);
    EXPECT_TRUE(gone.tree->ended);
    EXPECT_EQ(gone.tree->cpu_percent, std::nullopt);
}

TEST_F(HostSamplerTest, TellsWhoIsOnTheGpuWhereItsPidsAreOurs) {
    process({.pid = 50, .command = std::string("python3\0train.py", 16)});
    folder.file("50/environ", std::string("A=1\0SLURM_JOB_ID=77\0", 20));
    folder.file("50/cgroup", "0::/system.slice/docker-" + std::string(64, 'a') + ".scope\n");
    folder.file("50/status", "Name:\tpython3\nUid:\t4000000\t0\t0\t0\n");
    DeviceSample device{
        .gpu = 1,
        .processes = std::vector<GpuProcess>{{.pid = 50, .memory_bytes = 9}, {.pid = 999}}};
    HostSampler host = sampler();
    auto rows = host.rows({device}, kSecond);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].gpu, 1);
    EXPECT_EQ(rows[0].pid_here, 50);
    EXPECT_EQ(rows[0].command, "python3 train.py");
    EXPECT_EQ(rows[0].slurm_job, "77");
    EXPECT_EQ(rows[0].container, "docker aaaaaaaaaaaa");
    EXPECT_EQ(rows[0].user, "4000000");
    EXPECT_EQ(rows[1].pid_here, std::nullopt);
    // In a container the driver's pid 50 is somebody else than ours.
    std::filesystem::remove(folder.path() / "self/ns/pid");
    std::filesystem::create_symlink("pid:[4026532000]", folder.path() / "self/ns/pid");
    rows = host.rows({device}, 2 * kSecond);
    EXPECT_EQ(rows[0].pid_here, std::nullopt);
    EXPECT_EQ(rows[0].command, std::nullopt);
}

TEST(ProcTest, NamesWithBracketsAndSpacesDoNotShiftTheFields) {
    auto stat = parse_stat("7 (a) b (c)) R 3 0 0 0 0 0 0 0 0 0 5 6 0 0 20 0 4 0 88 0 12 0");
    ASSERT_TRUE(stat);
    EXPECT_EQ(stat->name, "a) b (c)");
    EXPECT_EQ(stat->state, 'R');
    EXPECT_EQ(stat->parent, 3);
    EXPECT_EQ(stat->cpu_ticks, 11u);
    EXPECT_EQ(stat->threads, 4);
    EXPECT_EQ(stat->start_ticks, 88u);
    EXPECT_EQ(stat->resident_pages, 12u);
    EXPECT_FALSE(parse_stat(""));
    EXPECT_FALSE(parse_stat("7 (x) R 3"));
}

TEST(ProcTest, ReadsContainersAndJobsFromCgroups) {
    std::string id(64, 'b');
    EXPECT_EQ(container_of_cgroup("0::/\n"), std::nullopt);
    EXPECT_EQ(container_of_cgroup("4:memory:/docker/" + id + "\n"), "docker bbbbbbbbbbbb");
    EXPECT_EQ(container_of_cgroup("0::/kubepods.slice/cri-containerd-" + id + ".scope"),
              "cri-containerd bbbbbbbbbbbb");
    EXPECT_EQ(slurm_job_of_cgroup("0::/system.slice/slurmstepd.scope/job_4711/step_0\n"), "4711");
    EXPECT_EQ(slurm_job_of_cgroup("0::/job_4711\n"), std::nullopt);
}

}  // namespace
}  // namespace saturate
