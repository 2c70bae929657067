// SPDX-License-Identifier: Apache-2.0
// Samples of the host, which accompany those of the device (base/device.h), and the snapshot of one
// tick, which views and exporters show. Plain values; an absent value is unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/device.h"

namespace saturate {

struct ThreadSample {
    std::int64_t pid = 0;
    std::int64_t tid = 0;
    std::string name;
    char state = '?';                   // as in /proc: R running, S sleeping, D waiting for a disk
    std::optional<double> cpu_percent;  // of one core, since the last sample
};

// A process tree: the watched process and all its descendants. Rates cover the time since the last
// sample.
struct TreeSample {
    std::int64_t root_pid = 0;
    bool ended = false;  // the root process has ended
    int processes = 0;
    int threads = 0;
    int loader_workers = 0;                        // recognised by name, command or parent
    std::optional<double> cpu_percent;             // of one core: 250 is two and a half cores
    std::optional<double> main_thread_percent;     // of the root's first thread
    std::optional<double> worker_cpu_percent;      // mean over the loader workers
    std::optional<double> run_queue_percent;       // time runnable but not running, of one core
    std::optional<double> io_wait_percent;         // time blocked on a disk, of one core
    std::optional<std::uint64_t> read_bytes;       // from the disk, since the first sample
    std::optional<std::uint64_t> read_call_bytes;  // by read(2), page cache included
    std::optional<std::uint64_t> memory_bytes;     // resident; shared pages count in each process
    std::vector<ThreadSample> busiest;             // at most 16 threads, busiest first
    std::optional<std::string> slurm_job;
    std::optional<std::string> container;
};

struct HostSample {
    std::int64_t time_ns = 0;
    std::optional<double> cpu_percent;      // of all cores
    std::optional<double> io_wait_percent;  // of all cores
    std::optional<int> cores;
    std::optional<int> running;  // tasks that run or wait for a core
    std::optional<std::uint64_t> memory_total_bytes;
    std::optional<std::uint64_t> memory_available_bytes;
    std::optional<TreeSample> tree;         // if a process is watched
    std::optional<double> own_cpu_percent;  // of one core, the cost of sampling
    std::optional<std::uint64_t> own_memory_bytes;
};

// A process on a GPU, with details from the host.
struct ProcessRow {
    int gpu = 0;
    GpuProcess process;
    std::optional<std::int64_t> pid_here;  // in our pid namespace; absent if not visible
    std::optional<std::string> command;
    std::optional<std::string> user;
    std::optional<double> cpu_percent;
    std::optional<std::uint64_t> memory_bytes;
    std::optional<std::string> slurm_job;
    std::optional<std::string> container;
};

// The state after one tick. `devices` has one entry per watched GPU; values that are read less
// often keep their last reading. `gpus` identifies them, in the same order.
struct Snapshot {
    std::uint64_t tick = 0;
    std::int64_t time_ns = 0;  // steady
    std::int64_t wall_ns = 0;
    std::int64_t started_ns = 0;  // steady, time of the first tick
    double interval_seconds = 1;
    std::vector<GpuIdentity> gpus;
    std::vector<DeviceSample> devices;
    HostSample host;
    std::vector<ProcessRow> processes;
    std::optional<std::string> driver_version;
    std::string devices_absent_because;  // why there is no GPU, or empty
    std::uint64_t driver_calls = 0;
    std::uint64_t late_ticks = 0;  // deadlines missed so far
};

}  // namespace saturate
