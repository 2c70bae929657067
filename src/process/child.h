// SPDX-License-Identifier: Apache-2.0
// A command that was started beside us: `monitor -- COMMAND`, `run -- COMMAND`. It inherits our
// terminal; Ctrl-C reaches it as it reaches us.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace saturate {

struct ChildSettings {
    bool output_to_stderr = false;  // its stdout goes to our stderr, to keep ours for results
    std::vector<std::pair<std::string, std::string>> environment;  // added to ours
    int output_fd = -1, error_fd = -1;  // where its stdout and stderr go; -1: where ours do
    bool own_group = false;             // signals of the terminal do not reach it
    bool ends_with_us = false;          // SIGTERM when we are gone
    const sigset_t* mask = nullptr;     // its signal mask, where ours is not what it should have
};

class ChildNotStarted : public UserError {
  public:
    ChildNotStarted(const std::string& command, int error);
    [[nodiscard]] int error() const { return error_; }  // errno

  private:
    int error_;
};

class Child {
  public:
    // Throws ChildNotStarted when the command cannot be started.
    Child(const std::vector<std::string>& command, const ChildSettings& settings);
    ~Child();  // leaves a command that still runs alone
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    // Its exit code (128 + signal when one ended it) once it has ended, else nothing.
    [[nodiscard]] std::optional<int> status();
    // The signal that ended it, once it has ended; 0: none did.
    [[nodiscard]] int ended_by_signal() const { return signal_; }
    int wait();  // blocks until it ends
    void signal(int number);

  private:
    pid_t pid_ = -1;
    void note(int raw);
    std::optional<int> status_;
    int signal_ = 0;
};

}  // namespace saturate
