// SPDX-License-Identifier: Apache-2.0
// Makes signals something to wait for. SIGCHLD and SIGWINCH end a wait too. One object per process
// at a time; its end restores the earlier handlers.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <memory>

namespace saturate {

class Signals {
  public:
    enum class Role {
        // Ctrl-C, SIGTERM and SIGHUP ask a long command to end in good order and keep its results.
        // A second one ends the process at once. SIGPIPE becomes a failed write.
        stop,
        // For a process in front of a command. Signals that another process sends us go on to the
        // command; signals of the terminal (Ctrl-C, Ctrl-\) reached the command already. Signals
        // are held back from the start until relay_to().
        relay,
    };
    explicit Signals(Role role);
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    // The signal that asked us to end (Role::relay: the last one, which may be SIGQUIT); 0: none
    // yet.
    [[nodiscard]] int stop_signal() const;

    enum class Woke { deadline, signal, input };
    // Waits until `deadline_ns` of the steady clock, a signal, or input on `fd` (-1: none).
    Woke wait_until(std::int64_t deadline_ns, int fd = -1);

    [[nodiscard]] const sigset_t& mask_before() const;  // signal mask for the command
    void relay_to(pid_t pid);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
