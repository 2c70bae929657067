// SPDX-License-Identifier: Apache-2.0
// The sockets of an HttpAddress; for the web server alone.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace saturate {

struct HttpAddress;

// An address in the form that the sockets want.
struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t length = 0;
};

// A listening socket of our own, because libmicrohttpd does not say why it could not start. Throws
// UserError (in use, no such address) and MachineError.
[[nodiscard]] int listen_on(const HttpAddress& address, std::string_view option);
// The port that the system chose where 0 was asked for.
[[nodiscard]] std::uint16_t bound_port(int fd);

}  // namespace saturate
