// SPDX-License-Identifier: Apache-2.0
#include "process/signal_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/clock.h"
#include "base/error.h"

namespace saturate {

namespace {

// What a handler may touch: it can be given nothing else.
std::atomic<pid_t> child_pid{0};
std::atomic<int> stop_seen{0};
std::atomic<int> wake_fd{-1};

constexpr int kRelayed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

void wake(int) {
    int error = errno;
    [[maybe_unused]] ssize_t wrote = ::write(wake_fd, "", 1);
    errno = error;
}

void relay(int number, siginfo_t* info, void*) {
    int error = errno;
    // Positive: from the kernel, so from the terminal, whose whole foreground got it.
    bool is_terminals = info && info->si_code > 0;
    pid_t child = child_pid;
    if (!is_terminals && child > 0) ::kill(child, number);
    if (number != SIGUSR1 && number != SIGUSR2) stop_seen = number;
    errno = error;
    wake(number);
}

}  // namespace

struct SignalRelay::Impl {
    int read_fd = -1;
    sigset_t mask;
    struct sigaction relayed[std::size(kRelayed)];
    struct sigaction child;
};

SignalRelay::SignalRelay() : impl_(std::make_unique<Impl>()) {
    int ends[2];
    SATURATE_CHECK(wake_fd == -1, "one SignalRelay at a time");
    SATURATE_CHECK(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0, "a process can open two files more");
    impl_->read_fd = ends[0];
    wake_fd = ends[1];
    stop_seen = 0;
    child_pid = 0;
    sigset_t held;
    ::sigemptyset(&held);
    for (int number : kRelayed) ::sigaddset(&held, number);
    ::sigprocmask(SIG_BLOCK, &held, &impl_->mask);
    struct sigaction action {};
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    action.sa_sigaction = relay;
    for (std::size_t i = 0; i < std::size(kRelayed); ++i) {
        ::sigaction(kRelayed[i], nullptr, &impl_->relayed[i]);
        // What was ignored when we were started stays so: nohup keeps SIGHUP away.
        if (impl_->relayed[i].sa_handler != SIG_IGN) ::sigaction(kRelayed[i], &action, nullptr);
    }
    action.sa_flags = SA_RESTART;
    action.sa_handler = wake;
    ::sigaction(SIGCHLD, &action, &impl_->child);
}

SignalRelay::~SignalRelay() {
    for (std::size_t i = 0; i < std::size(kRelayed); ++i)
        ::sigaction(kRelayed[i], &impl_->relayed[i], nullptr);
    ::sigaction(SIGCHLD, &impl_->child, nullptr);
    ::sigprocmask(SIG_SETMASK, &impl_->mask, nullptr);
    child_pid = 0;
    ::close(wake_fd.exchange(-1));
    ::close(impl_->read_fd);
}

const sigset_t& SignalRelay::mask_before() const { return impl_->mask; }

void SignalRelay::set_child(pid_t pid) {
    child_pid = pid;
    ::sigprocmask(SIG_SETMASK, &impl_->mask, nullptr);
}

int SignalRelay::stop_signal() const { return stop_seen; }

void SignalRelay::wait_until(std::int64_t deadline_ns, int fd) {
    std::int64_t left = std::max<std::int64_t>(deadline_ns - now_ns(), 0);
    pollfd fds[2] = {{impl_->read_fd, POLLIN, 0}, {fd, POLLIN, 0}};
    timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    if (::ppoll(fds, fd >= 0 ? 2 : 1, &timeout, nullptr) <= 0) return;
    char bytes[64];
    while (::read(impl_->read_fd, bytes, sizeof bytes) > 0) {
    }
}

}  // namespace saturate
