// SPDX-License-Identifier: Apache-2.0
#include "base/free_port.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

namespace saturate {

int free_port() {
    int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    bool found =
        fd >= 0 && ::bind(fd, any, sizeof address) == 0 && ::getsockname(fd, any, &length) == 0;
    ::close(fd);
    if (!found)
        throw MachineError({.found = "no port of 127.0.0.1 is free", .expected = "one free port"});
    return ntohs(address.sin_port);
}

}  // namespace saturate
