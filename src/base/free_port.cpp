// SPDX-License-Identifier: Apache-2.0
#include "base/free_port.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/descriptor.h"
#include "base/error.h"

namespace saturate {

int free_port() {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (!socket.is_open() || ::bind(socket.get(), any, sizeof address) != 0 ||
        ::getsockname(socket.get(), any, &length) != 0)
        throw MachineError({.found = "no port of 127.0.0.1 is free", .expected = "one free port"});
    return ntohs(address.sin_port);
}

}  // namespace saturate
