// SPDX-License-Identifier: Apache-2.0
// Starts and watches a child process: the only way in which this project starts a process. The
// child inherits our terminal unless told otherwise. Ctrl-C reaches it as it reaches us. Used from
// one thread.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace saturate {

class WriteGuard;

// What happens to the processes that the command itself starts, in any process group or session.
enum class Tree {
    free,        // we leave them alone
    ended,       // signal_tree() reaches them all; they end if we die, even by SIGKILL
    ended_with,  // the same, and they also end with the command
};

struct ChildSettings {
    bool output_to_stderr = false;  // stdout goes to our stderr, which keeps our stdout for results
    std::vector<std::pair<std::string, std::string>> environment;  // added to ours
    bool no_input = false;                                         // stdin is empty
    int input_fd = -1;                  // the command's stdin; -1: ours, or empty
    int output_fd = -1, error_fd = -1;  // the command's stdout and stderr; -1: ours
    bool own_group = false;             // signals of the terminal do not reach the command
    bool ends_with_us = false;          // SIGTERM when we end
    bool default_signals = false;       // also resets signals that we were started to ignore
    const sigset_t* mask = nullptr;     // the command's signal mask; null: ours
    Tree tree = Tree::free;
    const WriteGuard* guard = nullptr;  // limits what the command may change; null: no limits
};

class ChildNotStarted : public UserError {
  public:
    ChildNotStarted(const std::vector<std::string>& command, int error);
    [[nodiscard]] int error() const { return error_; }  // errno

  private:
    int error_;
};

class Child {
  public:
    // Throws ChildNotStarted if the command cannot be started.
    Child(const std::vector<std::string>& command, const ChildSettings& settings);
    ~Child();  // a command that still runs goes on, unless its tree is to be ended
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    // The exit code (128 + signal if a signal ended the command) after the command ended, else
    // nothing. If its tree is being ended: only after the whole tree ended.
    [[nodiscard]] std::optional<int> status();
    // The signal that ended the command; 0: none, or it still runs.
    [[nodiscard]] int ended_by_signal() const { return signal_; }
    int wait();  // blocks until the command ends
    // The status, or nothing if the command still runs after `ns`.
    std::optional<int> wait_for(std::int64_t ns);
    void signal(int number);
    // Signals the command and all processes that it started. From then on, status() and wait()
    // refer to the end of the whole tree.
    void signal_tree(int number);

  private:
    struct Keeper;
    void note(int raw);
    void hear_keeper();
    pid_t pid_ = -1;
    std::unique_ptr<Keeper> keeper_;  // null for Tree::free
    std::optional<int> status_;
    int signal_ = 0;
};

}  // namespace saturate
