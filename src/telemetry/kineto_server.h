// SPDX-License-Identifier: Apache-2.0
// Serves the socket on which a stock PyTorch (2.7 and newer) asks whether to record a trace, if it
// was started with KINETO_USE_DAEMON=1 and KINETO_IPC_SOCKET_DIR. A thread of its profiler records
// and writes the trace while training continues. Datagrams are {u64 size, char type[32], body}:
// "ctxt" registers a process, "req" asks for work. Used from one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/descriptor.h"

namespace saturate {

class KinetoServer {
  public:
    // Throws MachineError if the socket cannot be created.
    explicit KinetoServer(const std::filesystem::path& folder);
    ~KinetoServer();
    KinetoServer(const KinetoServer&) = delete;
    KinetoServer& operator=(const KinetoServer&) = delete;

    [[nodiscard]] int fd() const { return socket_.get(); }
    // Answers all waiting messages. Calls `may_begin` before it tells a process to record; if that
    // returns false, it tries again at the next message of the process.
    void answer(const std::function<bool(std::int64_t pid)>& may_begin);

    [[nodiscard]] bool has_asked(std::int64_t pid) const { return asked_.contains(pid); }
    // Answers the next request of the process with this configuration.
    void request(std::int64_t pid, std::string configuration) {
        wanted_[pid] = std::move(configuration);
    }
    [[nodiscard]] bool is_delivered(std::int64_t pid) const { return delivered_.contains(pid); }

    static constexpr std::int64_t kWarmUpNs =
        1'000'000'000;  // warm-up of a window before it records
    // Returns a configuration that records `milliseconds` of all activities into `file`.
    [[nodiscard]] static std::string window(const std::filesystem::path& file, int milliseconds);

  private:
    std::filesystem::path path_;
    Descriptor socket_;
    std::set<std::int64_t> asked_, delivered_;
    std::map<std::int64_t, std::string> wanted_;
};

}  // namespace saturate
