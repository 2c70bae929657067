// SPDX-License-Identifier: Apache-2.0
// Signals of a process that only stands in front of a command: what somebody sends us goes on to
// the command, what the terminal sends (Ctrl-C, Ctrl-\) reached it already. We end when it does.
// One at a time in a process; the earlier handlers come back at its end.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <memory>

namespace saturate {

class SignalRelay {
  public:
    SignalRelay();  // signals wait from here until set_child
    ~SignalRelay();
    SignalRelay(const SignalRelay&) = delete;
    SignalRelay& operator=(const SignalRelay&) = delete;

    [[nodiscard]] const sigset_t& mask_before() const;  // for the command
    void set_child(pid_t pid);

    // Until this time of the steady clock, a signal, or input on `fd` (-1: none).
    void wait_until(std::int64_t deadline_ns, int fd);
    // The last of SIGINT, SIGTERM, SIGHUP and SIGQUIT that came; 0: none.
    [[nodiscard]] int stop_signal() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
