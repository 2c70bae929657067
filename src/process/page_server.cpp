// SPDX-License-Identifier: Apache-2.0
#include "process/page_server.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "base/error.h"
#include "process/child.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// The program that has `serve`: this one, or the one next to the engine.
fs::path program() {
    fs::path self = fs::read_symlink("/proc/self/exe");
    if (self.filename() == "saturate") return self;
    fs::path beside = self.parent_path() / "saturate";
    return fs::exists(beside) ? beside : self.parent_path() / "../../bin/saturate";
}

std::string first_line(int fd) {
    std::string out;
    char c = 0;
    while (true) {
        ssize_t got = ::read(fd, &c, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return "";
        if (c == '\n') return out;
        out += c;
    }
}

}  // namespace

std::string start_page_server(const fs::path& folder, const std::string& address) {
    std::vector<std::string> command{program().string(), "serve", "--live", "--pid",
                                     std::to_string(::getpid())};
    if (!address.empty()) command.push_back("--listen=" + address);
    command.emplace_back("--");
    command.push_back(folder.string());
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        throw MachineError({.found = "cannot create a pipe", .expected = "two free file handles"});
    sigset_t none;
    ::sigemptyset(&none);
    // An own process group: Ctrl-C is for the job, and the server then sees the job end.
    Child server(command,
                 {.no_input = true, .output_fd = ends[1], .own_group = true, .mask = &none});
    ::close(ends[1]);
    std::string url = first_line(ends[0]);
    ::close(ends[0]);
    if (!url.empty()) return url;
    server.wait();
    throw UserError({.found = "--serve: there is no page server",
                     .expected = "see the message above",
                     .fix = "--serve=127.0.0.1:0 takes any free port"});
}

}  // namespace saturate
