// SPDX-License-Identifier: Apache-2.0
#include "process/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/text.h"

namespace saturate {

ChildNotStarted::ChildNotStarted(const std::string& command, int error)
    : UserError(
          {.found = fmt::format("{} cannot be started: {}", quoted(command), std::strerror(error)),
           .expected = "a command after --"}),
      error_(error) {}

Child::Child(const std::vector<std::string>& command, const ChildSettings& settings) {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    int report[2];  // closes by itself when the command starts; else it tells why not
    SATURATE_CHECK(::pipe2(report, O_CLOEXEC) == 0, "a process can open two files more");
    pid_ = ::fork();
    if (pid_ == 0) {
        ::signal(SIGPIPE, SIG_DFL);
        if (settings.output_to_stderr) ::dup2(2, 1);
        if (settings.output_fd >= 0) ::dup2(settings.output_fd, 1);
        if (settings.error_fd >= 0) ::dup2(settings.error_fd, 2);
        if (settings.own_group) ::setpgid(0, 0);
        if (settings.ends_with_us) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        for (const auto& [name, value] : settings.environment)
            ::setenv(name.c_str(), value.c_str(), 1);
        if (settings.mask) ::sigprocmask(SIG_SETMASK, settings.mask, nullptr);
        ::execvp(words[0], words.data());
        int error = errno;
        [[maybe_unused]] ssize_t wrote = ::write(report[1], &error, sizeof error);
        ::_exit(127);
    }
    int fork_error = errno;
    ::close(report[1]);
    int error = 0;
    ssize_t got = pid_ > 0 ? ::read(report[0], &error, sizeof error) : 0;
    ::close(report[0]);
    if (pid_ < 0) {
        throw MachineError(
            {.found = fmt::format("no process can be started: {}", std::strerror(fork_error)),
             .expected = "room for one more process"});
    }
    if (got == sizeof error) {
        wait();
        throw ChildNotStarted(command[0], error);
    }
}

Child::~Child() = default;

std::optional<int> Child::status() {
    if (status_) return status_;
    int raw = 0;
    if (::waitpid(pid_, &raw, WNOHANG) != pid_) return std::nullopt;
    note(raw);
    return status_;
}

void Child::note(int raw) {
    signal_ = WIFEXITED(raw) ? 0 : WTERMSIG(raw);
    status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
}

int Child::wait() {
    int raw = 0;
    while (!status_) {
        pid_t got = ::waitpid(pid_, &raw, 0);
        if (got < 0 && errno == EINTR) continue;
        SATURATE_CHECK(got == pid_, "a child is waited for once");
        note(raw);
    }
    return *status_;
}

void Child::signal(int number) {
    if (!status()) ::kill(pid_, number);
}

}  // namespace saturate
