// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, SIGTERM and SIGHUP as something to wait for, so that a long command can end in good
// order and keep its results; SIGCHLD and SIGWINCH wake the wait too. SIGPIPE becomes a failed
// write. One at a time in a process; the earlier handlers come back at its end.
#pragma once

#include <cstdint>
#include <memory>

namespace saturate {

class Interrupts {
  public:
    Interrupts();
    ~Interrupts();
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    // The first of SIGINT, SIGTERM, SIGHUP that came; 0: none yet. A second one ends the process.
    [[nodiscard]] int stop_signal() const;

    enum class Woke { deadline, signal, input };
    // Waits until this time of the steady clock, a signal (any of the above), or input on `fd`
    // (-1: none).
    Woke wait_until(std::int64_t deadline_ns, int fd = -1);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
