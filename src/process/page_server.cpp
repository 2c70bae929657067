// SPDX-License-Identifier: Apache-2.0
#include "process/page_server.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "base/error.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// The program with `serve` in it: this one, or the one beside the engine.
fs::path program() {
    fs::path self = fs::read_symlink("/proc/self/exe");
    if (self.filename() == "saturate") return self;
    fs::path beside = self.parent_path() / "saturate";
    return fs::exists(beside) ? beside : self.parent_path() / "../../bin/saturate";
}

[[noreturn]] void become(const std::vector<std::string>& command, int out) {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    // A group of its own: Ctrl-C is for the job, whose end it then sees.
    ::setpgid(0, 0);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, 0);
    ::dup2(out, 1);
    ::execv(words[0], words.data());
    ::_exit(127);
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
    SATURATE_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "a process can open two files more");
    pid_t pid = ::fork();
    if (pid == 0) become(command, ends[1]);
    ::close(ends[1]);
    std::string url = pid > 0 ? first_line(ends[0]) : "";
    ::close(ends[0]);
    if (!url.empty()) return url;
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    throw UserError({.found = "--serve: there is no page server",
                     .expected = "what the message above asks for",
                     .fix = "--serve=127.0.0.1:0 takes any free port"});
}

}  // namespace saturate
