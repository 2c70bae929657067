// SPDX-License-Identifier: Apache-2.0
// The process between us and a command whose whole process tree is to end. It adopts the orphans of
// the command (PR_SET_CHILD_SUBREAPER) and ends the whole tree when asked to, or when its socket
// says that we are gone. It is a fork of this process: a lock that we hold by a file handle stays
// held until the last process of the tree is gone.
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

// Main function of the keeper, in the child of a fork. `start` becomes the command: it runs in a
// fork of the keeper and does not return.
[[noreturn]] void live(int socket, bool ends_with_command, const std::function<void(int)>& start);

}  // namespace saturate::keeper
