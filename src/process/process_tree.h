// SPDX-License-Identifier: Apache-2.0
// All processes that a command started, including orphans: while this object lives, orphans become
// our children instead of init's. Used to end a whole command with its wrapper scripts and what
// they left running. One per process, used from one thread.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

namespace saturate {

class ProcessTree {
  public:
    ProcessTree();   // make it before the command starts: earlier children do not belong to it
    ~ProcessTree();  // orphans go to init again
    ProcessTree(const ProcessTree&) = delete;
    ProcessTree& operator=(const ProcessTree&) = delete;

    // The running processes, parents before their children.
    [[nodiscard]] std::vector<pid_t> living() const;
    // Reaps orphans that came to us. The owner of `child` waits for `child` itself.
    void reap_orphans(pid_t child) const;
    // Sends SIGTERM once to each process whose parent is not in the tree: it may end its own
    // children.
    void ask_to_end();
    void kill() const;

  private:
    struct Process {
        pid_t pid, parent;
        bool is_zombie;
    };
    [[nodiscard]] std::vector<Process> all() const;

    std::set<pid_t> not_ours_;  // children that existed before
    std::set<pid_t> asked_;
};

}  // namespace saturate
