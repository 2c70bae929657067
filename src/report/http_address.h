// SPDX-License-Identifier: Apache-2.0
// The sockets of an HttpAddress; used only by the web server.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/descriptor.h"

namespace saturate {

struct HttpAddress;

// An address in the form that the socket functions need.
struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t length = 0;
};

// Opens a listening socket ourselves, because libmicrohttpd does not say why it cannot start.
// Throws UserError (in use, no such address) and MachineError.
[[nodiscard]] Descriptor listen_on(const HttpAddress& address, std::string_view option);
// Returns the port of the socket, which the system chose if 0 was requested.
[[nodiscard]] std::uint16_t bound_port(int fd);

}  // namespace saturate
