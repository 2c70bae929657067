// SPDX-License-Identifier: Apache-2.0
#include "process/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace saturate {

namespace {

// The only state that a handler may touch, because handlers get no other arguments.
std::atomic<int> stop_seen{0};
std::atomic<int> wake_fd{-1};
std::atomic<pid_t> relay_pid{0};

void wake(int) {
    int error = errno;
    [[maybe_unused]] ssize_t wrote = ::write(wake_fd, "", 1);
    errno = error;
}

void stop(int number) {
    int none = 0;
    if (!stop_seen.compare_exchange_strong(none, number)) {
        // Asked a second time: end at once.
        ::signal(number, SIG_DFL);
        ::raise(number);
    }
    wake(number);
}

void relay(int number, siginfo_t* info, void*) {
    int error = errno;
    // Positive: sent by the kernel for the terminal, so the whole foreground group got it.
    bool is_terminals = info && info->si_code > 0;
    pid_t pid = relay_pid;
    if (!is_terminals && pid > 0) ::kill(pid, number);
    if (number != SIGUSR1 && number != SIGUSR2) stop_seen = number;
    errno = error;
    wake(number);
}

constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kRelayed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr int kWakes[] = {SIGCHLD, SIGWINCH};

}  // namespace

struct Signals::Impl {
    struct Earlier {
        int number;
        struct sigaction action;
    };
    int read_fd = -1;
    sigset_t mask;
    std::vector<Earlier> earlier;

    void handle(int number, struct sigaction action, bool unless_ignored) {
        Earlier old{.number = number, .action = {}};
        ::sigaction(number, nullptr, &old.action);
        // Signals ignored at our start stay ignored, such as SIGHUP under nohup.
        if (unless_ignored && old.action.sa_handler == SIG_IGN) return;
        earlier.push_back(old);
        ::sigaction(number, &action, nullptr);
    }
};

Signals::Signals(Role role) : impl_(std::make_unique<Impl>()) {
    SATURATE_CHECK(wake_fd == -1, "one Signals at a time");
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        throw MachineError({.found = "cannot create a pipe", .expected = "two free file handles"});
    impl_->read_fd = ends[0];
    stop_seen = 0;
    relay_pid = 0;
    wake_fd = ends[1];
    ::sigprocmask(SIG_SETMASK, nullptr, &impl_->mask);
    struct sigaction action {};
    action.sa_flags = SA_RESTART;
    action.sa_handler = wake;
    for (int number : kWakes) impl_->handle(number, action, false);
    if (role == Role::stop) {
        action.sa_handler = stop;
        for (int number : kStops) impl_->handle(number, action, true);
        action.sa_handler = SIG_IGN;
        impl_->handle(SIGPIPE, action, false);
        return;
    }
    sigset_t held;
    ::sigemptyset(&held);
    for (int number : kRelayed) ::sigaddset(&held, number);
    ::sigprocmask(SIG_BLOCK, &held, nullptr);
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    action.sa_sigaction = relay;
    for (int number : kRelayed) impl_->handle(number, action, true);
}

Signals::~Signals() {
    for (const Impl::Earlier& old : impl_->earlier) ::sigaction(old.number, &old.action, nullptr);
    ::sigprocmask(SIG_SETMASK, &impl_->mask, nullptr);
    relay_pid = 0;
    ::close(wake_fd.exchange(-1));
    ::close(impl_->read_fd);
}

int Signals::stop_signal() const { return stop_seen; }

const sigset_t& Signals::mask_before() const { return impl_->mask; }

void Signals::relay_to(pid_t pid) {
    relay_pid = pid;
    ::sigprocmask(SIG_SETMASK, &impl_->mask, nullptr);
}

Signals::Woke Signals::wait_until(std::int64_t deadline_ns, int fd) {
    while (true) {
        std::int64_t left = deadline_ns - now_ns();
        if (left <= 0) return Woke::deadline;
        pollfd fds[2] = {{impl_->read_fd, POLLIN, 0}, {fd, POLLIN, 0}};
        timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
        int ready = ::ppoll(fds, fd >= 0 ? 2 : 1, &timeout, nullptr);
        if (ready <= 0) continue;  // timeout, or a signal whose byte the next turn reads
        if (fds[0].revents != 0) {
            char bytes[64];
            while (::read(impl_->read_fd, bytes, sizeof bytes) > 0) {
            }
            return Woke::signal;
        }
        return Woke::input;
    }
}

}  // namespace saturate
