// SPDX-License-Identifier: Apache-2.0
#include "process/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "process/child_keeper.h"
#include "process/how_to_start.h"
#include "process/write_guard.h"

namespace saturate {

namespace {

constexpr std::int64_t kTurnNs = 10'000'000;

[[noreturn]] void throw_no_process(int error) {
    throw MachineError({.found = fmt::format("cannot start a process: {}", std::strerror(error)),
                        .expected = "space for one more process"});
}

std::vector<char*> pointers(const std::vector<std::string>& command) {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    return words;
}

// Runs in the child of a fork: becomes the command, or writes the reason to `report` and ends.
// Handled signals return to their default on exec.
[[noreturn]] void become(char* const* words, const ChildSettings& settings, const sigset_t& mask,
                         int report) {
    ::signal(SIGPIPE, SIG_DFL);
    if (settings.default_signals)
        for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(number, SIG_DFL);
    if (settings.no_input) ::dup2(::open("/dev/null", O_RDONLY), 0);
    if (settings.input_fd >= 0) ::dup2(settings.input_fd, 0);
    if (settings.output_to_stderr) ::dup2(2, 1);
    if (settings.output_fd >= 0) ::dup2(settings.output_fd, 1);
    if (settings.error_fd >= 0) ::dup2(settings.error_fd, 2);
    if (settings.own_group) ::setpgid(0, 0);
    if (settings.ends_with_us) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (settings.guard) settings.guard->put_in_force();
    for (const auto& [name, value] : settings.environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::sigprocmask(SIG_SETMASK, settings.mask ? settings.mask : &mask, nullptr);
    ::execvp(words[0], words);
    int error = errno;
    [[maybe_unused]] ssize_t wrote = ::write(report, &error, sizeof error);
    ::_exit(127);
}

}  // namespace

ChildNotStarted::ChildNotStarted(const std::vector<std::string>& command, int error)
    : UserError(why_not_started(command, error)), error_(error) {}

struct Child::Keeper {
    pid_t pid = -1;
    int socket = -1;
    ~Keeper() {
        if (socket >= 0) ::close(socket);
    }
    // Waits for news, or takes what is already there.
    [[nodiscard]] std::optional<keeper::News> news(bool blocks) const {
        keeper::News news{};
        ssize_t got = 0;
        do {
            got = ::recv(socket, &news, sizeof news, blocks ? 0 : MSG_DONTWAIT);
        } while (got < 0 && errno == EINTR);
        return got == sizeof news ? std::optional(news) : std::nullopt;
    }
    void order(keeper::Order::What what, int signal) const {
        keeper::Order order{what, signal};
        (void)::send(socket, &order, sizeof order, MSG_NOSIGNAL);
    }
};

Child::Child(const std::vector<std::string>& command, const ChildSettings& settings) {
    std::vector<char*> words = pointers(command);
    sigset_t mask;
    ::sigprocmask(SIG_SETMASK, nullptr, &mask);
    if (settings.tree == Tree::free) {
        int report[2];  // closed by exec; else it brings the errno
        if (::pipe2(report, O_CLOEXEC) != 0) throw_no_process(errno);
        pid_ = ::fork();
        if (pid_ == 0) become(words.data(), settings, mask, report[1]);
        int fork_error = errno;
        ::close(report[1]);
        int error = 0;
        ssize_t got = pid_ > 0 ? ::read(report[0], &error, sizeof error) : 0;
        ::close(report[0]);
        if (pid_ < 0) throw_no_process(fork_error);
        if (got == sizeof error) {
            wait();
            throw ChildNotStarted(command, error);
        }
        return;
    }
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) throw_no_process(errno);
    keeper_ = std::make_unique<Keeper>();
    keeper_->socket = ends[0];
    keeper_->pid = ::fork();
    if (keeper_->pid == 0) {
        ::close(ends[0]);
        keeper::live(ends[1], settings.tree == Tree::ended_with,
                     [&](int report) { become(words.data(), settings, mask, report); });
    }
    int fork_error = errno;
    ::close(ends[1]);
    if (keeper_->pid < 0) throw_no_process(fork_error);
    auto news = keeper_->news(true);
    if (news && news->what == keeper::News::started) {
        pid_ = news->value;
        return;
    }
    ::waitpid(keeper_->pid, nullptr, 0);
    throw ChildNotStarted(command, news ? news->value : ECHILD);
}

Child::~Child() {
    if (!keeper_ || status()) return;
    signal_tree(SIGKILL);
    wait();
}

void Child::note(int raw) {
    signal_ = WIFEXITED(raw) ? 0 : WTERMSIG(raw);
    status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
}

// Takes the keeper's news that the tree ended. A keeper that ended without news was killed, and the
// command then runs on without a parent.
void Child::hear_keeper() {
    auto news = keeper_->news(false);
    if (news && news->what == keeper::News::ended) {
        note(news->value);
        ::waitpid(keeper_->pid, nullptr, 0);
    } else if (int raw = 0; ::waitpid(keeper_->pid, &raw, WNOHANG) == keeper_->pid) {
        if (auto last = keeper_->news(false)) raw = last->value;
        note(raw);
    }
}

std::optional<int> Child::status() {
    if (status_) return status_;
    int raw = 0;
    if (keeper_)
        hear_keeper();
    else if (::waitpid(pid_, &raw, WNOHANG) == pid_)
        note(raw);
    return status_;
}

int Child::wait() {
    while (!status_ && keeper_) {
        pollfd socket{keeper_->socket, POLLIN, 0};
        ::poll(&socket, 1, -1);
        hear_keeper();
    }
    int raw = 0;
    while (!status_) {
        pid_t got = ::waitpid(pid_, &raw, 0);
        if (got < 0 && errno == EINTR) continue;
        SATURATE_CHECK(got == pid_, "a child is waited for once");
        note(raw);
    }
    return *status_;
}

std::optional<int> Child::wait_for(std::int64_t ns) {
    std::int64_t end = now_ns() + ns;
    while (!status() && now_ns() < end) {
        timespec turn{.tv_sec = 0, .tv_nsec = kTurnNs};
        ::nanosleep(&turn, nullptr);
    }
    return status_;
}

void Child::signal(int number) {
    if (status()) return;
    if (keeper_)
        keeper_->order(keeper::Order::to_command, number);
    else
        ::kill(pid_, number);
}

void Child::signal_tree(int number) {
    SATURATE_CHECK(keeper_, "a tree that is signalled has a keeper");
    if (!status()) keeper_->order(keeper::Order::to_tree, number);
}

}  // namespace saturate
