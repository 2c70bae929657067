// SPDX-License-Identifier: Apache-2.0
// A small web server: published pages, replies of a handler, and streams of server-sent events. GET
// only, with limits on request size, time and connections. The only user of libmicrohttpd, which is
// loaded when a server is created, because it loads 20 more libraries that other commands do not
// need. Serves from internal threads; publish() and push() may be called from any thread.
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
    std::string host = "127.0.0.1";  // an IPv4 or IPv6 address; 0.0.0.0: all networks
    std::uint16_t port = 9838;

    // Parses "", "9100", ":9100", "0.0.0.0", "0.0.0.0:9100" or "[::1]:9100". Throws UserError.
    static HttpAddress parse(std::string_view text, std::string_view option,
                             std::uint16_t default_port = 9838);
    [[nodiscard]] std::string text() const;  // "127.0.0.1:9838", "[::1]:9838"
    [[nodiscard]] bool is_loopback() const;  // 127.0.0.0/8 or ::1
};

struct HttpRequest {
    std::string path;                                        // "/run", decoded
    std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
    std::string host, origin, cookie, authorization;         // headers; empty if not sent

    [[nodiscard]] std::string value(std::string_view name) const;  // the first one, or ""
    [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
};

struct HttpReply {
    unsigned status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::shared_ptr<const std::string> content;  // shared by all clients; null: empty
    std::vector<std::pair<std::string, std::string>> headers;
    std::string channel;  // if set, a stream: `content`, then the events pushed to this channel

    static HttpReply text(unsigned status, std::string text);
};

struct HttpLimits {
    unsigned connections = 32;
    unsigned connections_per_client = 16;
    unsigned idle_seconds = 5;
    unsigned threads = 1;
    // The most time for a complete request and for a complete reply, even if bytes keep coming.
    // Streams have no limit.
    std::chrono::milliseconds request_time{20'000};
    std::chrono::milliseconds answer_time{300'000};
};

// The server's threads call it, possibly several at the same time. An exception becomes a reply
// with status 500.
using HttpHandler = std::function<HttpReply(const HttpRequest&)>;

// Called first: returns a reply that refuses the request, or nullopt to accept it (http_guard.h).
using HttpRefusal = std::function<std::optional<HttpReply>(const HttpRequest&)>;

class HttpServer {
  public:
    // Without a handler it serves the published pages. Throws UserError if the address is not one
    // of this machine or the port is in use; the message names `option`, the flag with the
    // address. Throws MachineError if libmicrohttpd is missing.
    HttpServer(const HttpAddress& address, std::string_view option, HttpHandler handler = {},
               const HttpLimits& limits = {}, HttpRefusal refusal = {});
    ~HttpServer();  // ends the streams
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    // Sets the reply to GET `path` from now on.
    void publish(const std::string& path, std::string content_type, std::string content);
    // Returns the address that it listens on, with the port that the system chose for port 0.
    [[nodiscard]] HttpAddress address() const;

    // Sends an event to all listeners of the channel. Only the newest event waits: a listener that
    // has not read the previous event misses it.
    void push(const std::string& channel, const std::string& data);
    // Sends a comment to all listeners, to notice those that are gone.
    void beat();
    [[nodiscard]] std::vector<std::string> channels() const;  // channels that have a listener
    [[nodiscard]] std::size_t listeners() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
