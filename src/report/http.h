// SPDX-License-Identifier: Apache-2.0
// A small web server for pages that a command keeps up to date: GET only, with limits on request
// size, time and connections. The only user of libmicrohttpd, which is loaded when a server is
// made: it brings 20 libraries along, and no other start of the program should pay for them. Serves
// from a thread of its own; publish() may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace saturate {

struct HttpAddress {
    std::string host = "127.0.0.1";  // an IPv4 or IPv6 address; 0.0.0.0 is every network
    std::uint16_t port = 9838;

    // "", "9100", ":9100", "0.0.0.0", "0.0.0.0:9100", "[::1]:9100". Throws UserError.
    static HttpAddress parse(std::string_view text, std::string_view option);
    [[nodiscard]] std::string text() const;  // "127.0.0.1:9838", "[::1]:9838"
};

class HttpServer {
  public:
    // Throws UserError when the address is not one of this machine or the port is in use, naming
    // `option` (the flag that asked for it), and MachineError without libmicrohttpd.
    HttpServer(const HttpAddress& address, std::string_view option);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    // What GET `path` answers from now on.
    void publish(const std::string& path, std::string content_type, std::string content);
    // Where it listens: with port 0 asked for, the port that the system chose.
    [[nodiscard]] HttpAddress address() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
