// SPDX-License-Identifier: Apache-2.0
// Serves the socket that a stock PyTorch (2.7 and newer) asks whether to record a trace, when it is
// started with KINETO_USE_DAEMON=1 and KINETO_IPC_SOCKET_DIR: its profiler's own thread records and
// writes, training goes on. Datagrams of {u64 size, char type[32], body}: "ctxt" registers a
// process, "req" asks for work. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace saturate {

class KinetoServer {
  public:
    // Throws MachineError when the socket cannot be made.
    explicit KinetoServer(const std::filesystem::path& folder);
    ~KinetoServer();
    KinetoServer(const KinetoServer&) = delete;
    KinetoServer& operator=(const KinetoServer&) = delete;

    [[nodiscard]] int fd() const { return fd_; }
    // Everything that waits. `may_begin` is asked before a process is told to record; where it says
    // no, the process is asked again when it asks next.
    void answer(const std::function<bool(std::int64_t pid)>& may_begin);

    [[nodiscard]] bool has_asked(std::int64_t pid) const { return asked_.contains(pid); }
    // The process' next question is answered with this.
    void request(std::int64_t pid, std::string configuration) {
        wanted_[pid] = std::move(configuration);
    }
    [[nodiscard]] bool is_delivered(std::int64_t pid) const { return delivered_.contains(pid); }

    static constexpr std::int64_t kWarmUpNs =
        1'000'000'000;  // that a window takes before it records
    // `milliseconds` of everything, into `file`.
    [[nodiscard]] static std::string window(const std::filesystem::path& file, int milliseconds);

  private:
    std::filesystem::path path_;
    int fd_ = -1;
    std::set<std::int64_t> asked_, delivered_;
    std::map<std::int64_t, std::string> wanted_;
};

}  // namespace saturate
