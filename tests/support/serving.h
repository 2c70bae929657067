// SPDX-License-Identifier: Apache-2.0
// For tests of `saturate serve`: runs it as a process, offers clients that send exact bytes, and
// writes run records for it to show.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace saturate {

// Writes a run with `steps` steps of 10 ms and a sample of one GPU for every 100 steps.
void write_run_record(const std::filesystem::path& folder, int steps,
                      std::int64_t started_wall_ns = 1'760'000'000'000'000'000);
void append_steps(const std::filesystem::path& folder, int first, int count);

// A server on a port that the system chooses. The destructor ends it.
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
    int wait();  // waits for it to end; exit code, or 128 + signal
    int stop();  // sends SIGTERM and waits
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
    // Reads until the other side closes or no byte has come for this time.
    std::string read_all(int milliseconds = 10'000);
    // Reads until the text has come and returns everything read so far, also if it never comes.
    std::string read_until(const std::string& text, int milliseconds = 10'000);
    [[nodiscard]] int fd() const { return fd_; }

  private:
    int fd_ = -1;
    std::string seen_;
};

// Returns the whole reply to a GET with its headers. `headers` are whole lines with \r\n.
std::string http_get(std::uint16_t port, const std::string& target, const std::string& headers = "",
                     const std::string& host = "localhost");
std::string http_body(const std::string& answer);
std::string http_status(const std::string& answer);  // "200"

}  // namespace saturate
