// SPDX-License-Identifier: Apache-2.0
#include "report/http_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "report/http.h"

namespace saturate {

namespace {

constexpr std::int64_t kPortMax = 65535;
constexpr int kWaiting = 64;  // backlog of connections in the kernel

std::optional<SocketAddress> resolve(const HttpAddress& address) {
    SocketAddress out;
    auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
    if (::inet_pton(AF_INET, address.host.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(address.port);
        out.length = sizeof *v4;
        return out;
    }
    if (::inet_pton(AF_INET6, address.host.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(address.port);
        out.length = sizeof *v6;
        return out;
    }
    return std::nullopt;
}

}  // namespace

Descriptor listen_on(const HttpAddress& address, std::string_view option) {
    SocketAddress where = resolve(address).value();
    Descriptor socket(
        ::socket(where.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int yes = 1;
    if (socket.is_open()) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (socket.is_open() &&
        ::bind(socket.get(), reinterpret_cast<sockaddr*>(&where.storage), where.length) == 0 &&
        ::listen(socket.get(), kWaiting) == 0)
        return socket;
    int error = errno;
    if (error == EADDRINUSE)
        throw UserError(
            {.found = fmt::format("{}: {} is in use by another program", option, address.text()),
             .expected = "a free port",
             .fix = fmt::format("{}={}", option, HttpAddress{address.host, 0}.text())});
    if (error == EADDRNOTAVAIL)
        throw UserError(
            {.found = fmt::format("{}: {} is not an address of this machine", option, address.host),
             .expected = "127.0.0.1, 0.0.0.0 for every network, or an address of this machine"});
    if (error == EACCES)
        throw UserError({.found = fmt::format("{}: port {} needs root", option, address.port),
                         .expected = "a port from 1024 to 65535"});
    throw MachineError({.found = fmt::format("{}: no socket: {}", option, std::strerror(error))});
}

HttpAddress HttpAddress::parse(std::string_view text, std::string_view option,
                               std::uint16_t default_port) {
    HttpAddress out{.port = default_port};
    std::string_view port;
    if (text.starts_with('[')) {
        std::size_t close = text.find(']');
        // Without a closing bracket the host is not a valid address, which is reported later.
        out.host = close == std::string_view::npos ? text : text.substr(1, close - 1);
        std::string_view rest = text.substr(std::min(text.size(), out.host.size() + 2));
        if (rest.starts_with(':')) port = rest.substr(1);
    } else if (std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
        if (colon > 0) out.host = text.substr(0, colon);
        port = text.substr(colon + 1);
    } else if (text.find('.') != std::string_view::npos) {
        out.host = text;
    } else {
        port = text;
    }
    std::optional<std::int64_t> number = port.empty() ? out.port : parse_integer(port);
    if (!number || *number < 0 || *number > kPortMax || !resolve(out)) {
        throw UserError(
            {.found = fmt::format("{} is {}", option, in_quotes(text)),
             .expected = fmt::format("PORT, ADDRESS or ADDRESS:PORT, such as {0} or 0.0.0.0:{0}",
                                     default_port)});
    }
    out.port = static_cast<std::uint16_t>(*number);
    return out;
}

std::string HttpAddress::text() const {
    return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                               : fmt::format("[{}]:{}", host, port);
}

bool HttpAddress::is_loopback() const {
    auto where = resolve(*this);
    if (!where) return false;
    if (where->storage.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(
            &reinterpret_cast<const sockaddr_in6*>(&where->storage)->sin6_addr);
    std::uint32_t v4 =
        ntohl(reinterpret_cast<const sockaddr_in*>(&where->storage)->sin_addr.s_addr);
    return v4 >> 24 == 127;
}

std::uint16_t bound_port(int fd) {
    SocketAddress bound;
    bound.length = sizeof bound.storage;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) != 0)
        return 0;
    return ntohs(bound.storage.ss_family == AF_INET6
                     ? reinterpret_cast<sockaddr_in6*>(&bound.storage)->sin6_port
                     : reinterpret_cast<sockaddr_in*>(&bound.storage)->sin_port);
}

}  // namespace saturate
