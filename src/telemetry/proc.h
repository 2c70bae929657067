// SPDX-License-Identifier: Apache-2.0
// Small readers of /proc, for one process or thread at a time. A process may vanish between two
// reads; the result is then empty. Tests pass a folder that looks like /proc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

// From /proc/PID/stat or /proc/PID/task/TID/stat.
struct ProcStat {
    std::int64_t pid = 0;
    std::int64_t parent = 0;
    std::string name;
    char state = '?';
    std::uint64_t cpu_ticks = 0;  // user and system
    int threads = 0;
    std::uint64_t start_ticks = 0;  // since boot
    std::uint64_t resident_pages = 0;
    std::uint64_t io_wait_ticks = 0;
};

struct ProcIo {
    std::uint64_t read_call_bytes = 0;
    std::uint64_t read_bytes = 0;
};

class Proc {
  public:
    explicit Proc(std::filesystem::path root = "/proc") : root_(std::move(root)) {}

    [[nodiscard]] std::string read(const std::string& name) const;  // empty if not there
    [[nodiscard]] std::vector<std::int64_t> processes() const;
    [[nodiscard]] std::vector<std::int64_t> threads(std::int64_t pid) const;
    [[nodiscard]] std::optional<ProcStat> stat(std::int64_t pid) const;
    [[nodiscard]] std::optional<ProcStat> thread_stat(std::int64_t pid, std::int64_t tid) const;
    [[nodiscard]] std::optional<std::uint64_t> thread_wait_ns(std::int64_t pid,
                                                              std::int64_t tid) const;
    [[nodiscard]] std::optional<ProcIo> io(std::int64_t pid) const;
    [[nodiscard]] std::string command(std::int64_t pid) const;  // arguments joined by spaces
    [[nodiscard]] std::optional<std::string> user(std::int64_t pid) const;
    [[nodiscard]] std::optional<std::string> slurm_job(std::int64_t pid) const;
    [[nodiscard]] std::optional<std::string> container(std::int64_t pid) const;
    // False inside a container: the pids that the driver reports are then not those of /proc.
    [[nodiscard]] bool sees_host_pids() const;

  private:
    [[nodiscard]] std::vector<std::int64_t> numbers_in(const std::filesystem::path& folder) const;
    std::filesystem::path root_;
};

// The parsers, public for tests.
[[nodiscard]] std::optional<ProcStat> parse_stat(std::string_view text);
[[nodiscard]] std::optional<std::string> container_of_cgroup(std::string_view text);
[[nodiscard]] std::optional<std::string> slurm_job_of_cgroup(std::string_view text);

}  // namespace saturate
