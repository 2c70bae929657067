// SPDX-License-Identifier: Apache-2.0
// Every process that a command started, also those whose parents are gone: while this lives, they
// come to us instead of to init. For ending a command whole, wrapper scripts and what they left
// behind included. One at a time in a process, one thread.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

namespace saturate {

class ProcessTree {
  public:
    ProcessTree();   // before the command is started: what we have started so far is no part of it
    ~ProcessTree();  // orphans go to init again
    ProcessTree(const ProcessTree&) = delete;
    ProcessTree& operator=(const ProcessTree&) = delete;

    // Those that run, each before what it started.
    [[nodiscard]] std::vector<pid_t> living() const;
    // Takes note of the end of orphans that came to us; `child` is waited for by its owner.
    void reap_orphans(pid_t child) const;
    // SIGTERM to every process whose parent is not of the tree, once each: it may end its own.
    void ask_to_end();
    void kill() const;

  private:
    struct Process {
        pid_t pid, parent;
        bool is_zombie;
    };
    [[nodiscard]] std::vector<Process> all() const;

    std::set<pid_t> not_ours_;  // children from before
    std::set<pid_t> asked_;
};

}  // namespace saturate
