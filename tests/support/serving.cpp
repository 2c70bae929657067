// SPDX-License-Identifier: Apache-2.0
#include "support/serving.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <stdexcept>

#include "base/json.h"

namespace saturate {

void append_steps(const std::filesystem::path& folder, int first, int count) {
    std::ofstream steps(folder / "steps.jsonl", std::ios::app);
    std::ofstream samples(folder / "samples.jsonl", std::ios::app);
    for (int i = first; i < first + count; ++i) {
        steps << fmt::format(
            "{{\"step\":{},\"t_ns\":{},\"duration_ns\":10000000,\"samples\":32,\"input_wait_ns\":"
            "4000000,\"forward_ns\":1000000,\"device_busy_ns\":6000000,\"loss\":{}}}\n",
            i, i * 10'000'000L, 1.0 / (1 + i));
        if (i % 100 == 0) {
            samples << fmt::format(
                "{{\"type\":\"gpu\",\"gpu\":0,\"t_ns\":{},\"took_ns\":1,\"utilization_percent\":60,"
                "\"power_watts\":300}}\n",
                i * 10'000'000L);
        }
    }
}

void write_run_record(const std::filesystem::path& folder, int steps,
                      std::int64_t started_wall_ns) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "run.json") << Json::object({{"schema", 1},
                                                        {"kind", "train"},
                                                        {"device", "cuda:0"},
                                                        {"started_ns", 1000},
                                                        {"started_wall_ns", started_wall_ns}})
                                              .line();
    std::ofstream(folder / "events.jsonl")
        << "{\"event\":\"evaluation\",\"t_ns\":1000000000,\"text\":\"accuracy 0.5\"}\n";
    append_steps(folder, 0, steps);
}

Serving::Serving(const std::string& binary, const std::vector<std::string>& words) {
    std::vector<std::string> command{binary, "serve", "--listen=127.0.0.1:0"};
    command.insert(command.end(), words.begin(), words.end());
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
        std::vector<char*> argv;
        for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        ::setenv("LC_ALL", "C.UTF-8", 1);
        ::dup2(ends[1], 1);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    ::close(ends[1]);
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) url_ += c;
    ::close(ends[0]);
    std::size_t colon = url_.rfind(':');
    if (colon == std::string::npos) throw std::runtime_error("serve did not start");
    port_ = static_cast<std::uint16_t>(std::stoi(url_.substr(colon + 1)));
}

Serving::~Serving() {
    if (pid_ > 0) stop();
}

int Serving::wait() {
    int raw = 0;
    ::waitpid(std::exchange(pid_, -1), &raw, 0);
    return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
}

int Serving::stop() {
    ::kill(pid_, SIGTERM);
    return wait();
}

double Serving::cpu_seconds() const {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid_));
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    // Count the fields after the name in brackets: state is field 3, utime and stime are 14 and 15.
    std::size_t at = text.rfind(')') + 2;
    for (int field = 3; field < 14; ++field) at = text.find(' ', at) + 1;
    std::size_t used = 0;
    double ticks = std::stod(text.substr(at), &used);
    ticks += std::stod(text.substr(at + used));
    return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

long Serving::memory_kilobytes() const {
    std::ifstream status(fmt::format("/proc/{}/status", pid_));
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
    }
    return -1;
}

RawClient::RawClient(std::uint16_t port) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0) {
        ::close(fd_);
        throw std::runtime_error("nobody listens");
    }
}

RawClient::~RawClient() {
    if (fd_ >= 0) ::close(fd_);
}

bool RawClient::send(const std::string& bytes) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
}

std::string RawClient::read_until(const std::string& text, int milliseconds) {
    std::size_t from = 0;  // the text before it was already searched
    while (text.empty() || seen_.find(text, from) == std::string::npos) {
        from = seen_.size() - std::min(seen_.size(), text.size());
        pollfd ready{fd_, POLLIN, 0};
        char buffer[16384];
        if (::poll(&ready, 1, milliseconds) <= 0) break;
        ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
        if (got <= 0) break;
        seen_.append(buffer, static_cast<std::size_t>(got));
    }
    return std::exchange(seen_, "");
}

std::string RawClient::read_all(int milliseconds) { return read_until("", milliseconds); }

std::string http_get(std::uint16_t port, const std::string& target, const std::string& headers,
                     const std::string& host) {
    RawClient client(port);
    client.send(fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}\r\n", target,
                            host, headers));
    return client.read_all();
}

std::string http_body(const std::string& answer) {
    std::size_t at = answer.find("\r\n\r\n");
    return at == std::string::npos ? "" : answer.substr(at + 4);
}

std::string http_status(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 ") ? answer.substr(9, 3) : "";
}

}  // namespace saturate
