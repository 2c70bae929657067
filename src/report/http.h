// SPDX-License-Identifier: Apache-2.0
// A small web server: pages that a command keeps up to date, answers of a handler, and streams of
// server-sent events. GET only, with limits on request size, time and connections. The only user of
// libmicrohttpd, which is loaded when a server is made: it brings 20 libraries along, and no other
// start of the program should pay for them. Serves from threads of its own; publish() and push()
// may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saturate {

struct HttpAddress {
    std::string host = "127.0.0.1";  // an IPv4 or IPv6 address; 0.0.0.0 is every network
    std::uint16_t port = 9838;

    // "", "9100", ":9100", "0.0.0.0", "0.0.0.0:9100", "[::1]:9100". Throws UserError.
    static HttpAddress parse(std::string_view text, std::string_view option,
                             std::uint16_t default_port = 9838);
    [[nodiscard]] std::string text() const;  // "127.0.0.1:9838", "[::1]:9838"
    [[nodiscard]] bool is_loopback() const;  // 127.0.0.0/8 or ::1
};

struct HttpRequest {
    std::string path;                                        // "/run", decoded
    std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
    std::string host, origin, cookie, authorization;         // headers; empty: not sent

    [[nodiscard]] std::string value(std::string_view name) const;  // the first; empty: none
    [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
};

struct HttpReply {
    unsigned status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::shared_ptr<const std::string> content;  // shared by all who ask; null: empty
    std::vector<std::pair<std::string, std::string>> headers;
    std::string channel;  // not empty: a stream of what is pushed to it; `content` comes first

    static HttpReply text(unsigned status, std::string text);
};

struct HttpLimits {
    unsigned connections = 32;
    unsigned connections_per_client = 16;
    unsigned idle_seconds = 5;
    unsigned threads = 1;
    // However busy it keeps itself: for a request to be whole, and for an answer to be taken. A
    // stream may last.
    std::chrono::milliseconds request_time{20'000};
    std::chrono::milliseconds answer_time{300'000};
};

// Called by the server's threads, by several at once where there are several. Whatever it throws
// becomes a 500.
using HttpHandler = std::function<HttpReply(const HttpRequest&)>;

// Asked before anything else: an answer instead of the page, or nothing (http_guard.h).
using HttpRefusal = std::function<std::optional<HttpReply>(const HttpRequest&)>;

class HttpServer {
  public:
    // Throws UserError when the address is not one of this machine or the port is in use, naming
    // `option` (the flag that asked for it), and MachineError without libmicrohttpd. Without a
    // handler it answers with what is published.
    HttpServer(const HttpAddress& address, std::string_view option, HttpHandler handler = {},
               const HttpLimits& limits = {}, HttpRefusal refusal = {});
    ~HttpServer();  // ends the streams
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    // What GET `path` answers from now on.
    void publish(const std::string& path, std::string content_type, std::string content);
    // Where it listens: with port 0 asked for, the port that the system chose.
    [[nodiscard]] HttpAddress address() const;

    // One event for everybody who listens to the channel. A listener that has not read the event
    // before it misses that one: only the newest waits.
    void push(const std::string& channel, const std::string& data);
    // A comment to everybody, so that listeners that are gone are noticed.
    void beat();
    [[nodiscard]] std::vector<std::string> channels() const;  // those with a listener
    [[nodiscard]] std::size_t listeners() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
