// SPDX-License-Identifier: Apache-2.0
// Signals as something to wait for. SIGCHLD and SIGWINCH wake the wait too. One at a time in a
// process; the earlier handlers come back at its end.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <memory>

namespace saturate {

class Signals {
  public:
    enum class Role {
        // Ctrl-C, SIGTERM and SIGHUP ask a long command to end in good order and keep its results;
        // asked a second time the process ends at once. SIGPIPE becomes a failed write.
        stop,
        // A process that only stands in front of a command: what somebody sends us goes on to the
        // command, what the terminal sends (Ctrl-C, Ctrl-\) reached it already. Signals wait from
        // the start until relay_to().
        relay,
    };
    explicit Signals(Role role);
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    // The signal that asks to end (Role::relay: the last one, SIGQUIT among them); 0: none yet.
    [[nodiscard]] int stop_signal() const;

    enum class Woke { deadline, signal, input };
    // Waits until this time of the steady clock, a signal, or input on `fd` (-1: none).
    Woke wait_until(std::int64_t deadline_ns, int fd = -1);

    [[nodiscard]] const sigset_t& mask_before() const;  // for the command
    void relay_to(pid_t pid);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
