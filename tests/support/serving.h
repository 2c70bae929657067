// SPDX-License-Identifier: Apache-2.0
// `saturate serve` as a process for a test, clients for it that say exactly what they are told, and
// run records for it to show.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace saturate {

// A run of `steps` steps of 10 ms with a sample of one GPU for each 100 of them.
void write_run_record(const std::filesystem::path& folder, int steps,
                      std::int64_t started_wall_ns = 1'760'000'000'000'000'000);
void append_steps(const std::filesystem::path& folder, int first, int count);

// A server on a port that the system chose; ended with the object.
class Serving {
  public:
    // `words` follow "serve --listen=127.0.0.1:0".
    Serving(const std::string& binary, const std::vector<std::string>& words);
    ~Serving();
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;

    [[nodiscard]] const std::string& url() const { return url_; }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    int wait();  // for its own end: exit code, or 128 + signal
    int stop();  // by SIGTERM
    [[nodiscard]] double cpu_seconds() const;
    [[nodiscard]] long memory_kilobytes() const;  // resident

  private:
    pid_t pid_ = -1;
    std::string url_;
    std::uint16_t port_ = 0;
};

// A connection to 127.0.0.1.
class RawClient {
  public:
    explicit RawClient(std::uint16_t port);
    ~RawClient();
    RawClient(RawClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    RawClient(const RawClient&) = delete;
    RawClient& operator=(const RawClient&) = delete;

    bool send(const std::string& bytes);
    // Until the other side closes, or this much time has passed without a byte.
    std::string read_all(int milliseconds = 10'000);
    // Until the text has come; everything read so far, without it if it never came.
    std::string read_until(const std::string& text, int milliseconds = 10'000);
    [[nodiscard]] int fd() const { return fd_; }

  private:
    int fd_ = -1;
    std::string seen_;
};

// The whole answer to a GET, headers included. `headers` are whole lines with \r\n.
std::string http_get(std::uint16_t port, const std::string& target, const std::string& headers = "",
                     const std::string& host = "localhost");
std::string http_body(const std::string& answer);
std::string http_status(const std::string& answer);  // "200"

}  // namespace saturate
