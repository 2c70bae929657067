// SPDX-License-Identifier: Apache-2.0
// Samples the host once per tick: the machine, a watched process tree, and details of the processes
// on the GPUs. Rates cover the time since the previous sample. One thread at a time.
#pragma once

#include <map>
#include <optional>

#include "telemetry/proc.h"
#include "telemetry/sample.h"

namespace saturate {

struct HostSettings {
    std::filesystem::path proc = "/proc";
    std::optional<std::int64_t> watched_pid;  // root of a process tree to watch
    std::int64_t ticks_per_second = 0;        // 0: ask the system
    std::int64_t page_bytes = 0;
};

class HostSampler {
  public:
    explicit HostSampler(const HostSettings& settings);

    [[nodiscard]] HostSample sample(std::int64_t time_ns);
    // Returns the processes on the GPUs with the details that the host knows.
    [[nodiscard]] std::vector<ProcessRow> rows(const std::vector<DeviceSample>& devices,
                                               std::int64_t time_ns);
    [[nodiscard]] bool is_there(std::int64_t pid) const { return proc_.stat(pid).has_value(); }

  private:
    // The counters of a process or thread at the last sample.
    struct Seen {
        std::uint64_t cpu_ticks = 0;
        std::uint64_t wait_ns = 0;
        std::uint64_t io_wait_ticks = 0;
        ProcIo io;
        std::uint64_t start_ticks = 0;
        std::uint64_t round = 0;  // of its last sample, to drop ended ones
    };

    void sample_machine(HostSample& out);
    void sample_own(HostSample& out, double seconds);
    [[nodiscard]] TreeSample sample_tree(double seconds);
    void sample_threads(TreeSample& tree, const std::vector<ProcStat>& members, double seconds);
    [[nodiscard]] std::vector<ProcStat> tree_members() const;
    [[nodiscard]] bool is_loader_worker(const ProcStat& process, const ProcStat& parent) const;
    [[nodiscard]] double percent_of_core(std::uint64_t ticks, double seconds) const;

    HostSettings settings_;
    Proc proc_;
    std::uint64_t round_ = 0;
    std::optional<std::int64_t> last_ns_;
    std::vector<std::uint64_t> last_cpu_;  // first line of /proc/stat
    double last_own_cpu_seconds_ = 0;
    std::map<std::int64_t, Seen> processes_, threads_;
    std::uint64_t read_bytes_ = 0, read_call_bytes_ = 0;
    bool has_io_ = false;
    std::map<std::int64_t, ProcessRow> known_rows_;  // constant facts, by pid
    std::map<std::int64_t, std::pair<std::int64_t, std::uint64_t>> row_cpu_;  // time, ticks
};

}  // namespace saturate
