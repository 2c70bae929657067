// SPDX-License-Identifier: Apache-2.0
// The process between us and a command whose whole tree is to end. It adopts whatever the command
// leaves behind (PR_SET_CHILD_SUBREAPER) and ends all of it when it is asked to, or when its
// socket says that we are gone. A copy of this process: what we hold by a file handle, a lock
// say, is held until the last process of the tree is gone.
#pragma once

#include <sys/types.h>

#include <functional>

namespace saturate::keeper {

struct Order {
    enum What : int { to_command, to_tree } what;
    int signal;
};

struct News {
    enum What : int { started, not_started, ended } what;
    int value;  // pid, errno, or the raw status
};

// The keeper's whole life, in the child of a fork. `start` becomes the command (it runs in a fork
// of the keeper and does not return).
[[noreturn]] void live(int socket, bool ends_with_command, const std::function<void(int)>& start);

}  // namespace saturate::keeper
