// SPDX-License-Identifier: Apache-2.0
// A command that was started beside us: the one way in which this project starts a process. It
// inherits our terminal unless told otherwise; Ctrl-C reaches it as it reaches us.
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

// What becomes of the processes that the command itself starts, whatever group or session they
// are in.
enum class Tree {
    free,        // they are the command's own affair
    ended,       // end_tree() ends them all; they end too when we are gone, even by SIGKILL
    ended_with,  // ... and when the command ends
};

struct ChildSettings {
    bool output_to_stderr = false;  // its stdout goes to our stderr, to keep ours for results
    std::vector<std::pair<std::string, std::string>> environment;  // added to ours
    bool no_input = false;                                         // its stdin is empty
    int input_fd = -1;                  // its stdin; -1: ours, or an empty one
    int output_fd = -1, error_fd = -1;  // where its stdout and stderr go; -1: where ours do
    bool own_group = false;             // signals of the terminal do not reach it
    bool ends_with_us = false;          // SIGTERM when we are gone
    bool default_signals = false;       // also those that we were started to ignore
    const sigset_t* mask = nullptr;     // its signal mask, where ours is not what it should have
    Tree tree = Tree::free;
    const WriteGuard* guard = nullptr;  // what it may not change; null: no such thing
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
    ~Child();  // leaves a command that still runs alone, unless its tree is to be ended
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    // Its exit code (128 + signal when one ended it) once it has ended, else nothing. Of a tree
    // that is being ended, once all of it has.
    [[nodiscard]] std::optional<int> status();
    // The signal that ended it, once it has ended; 0: none did.
    [[nodiscard]] int ended_by_signal() const { return signal_; }
    int wait();  // blocks until it ends
    // The status, or nothing when it still runs after so long.
    std::optional<int> wait_for(std::int64_t ns);
    void signal(int number);
    // The same for the command and all that it started; from now on the end is the end of all.
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
