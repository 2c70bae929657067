// SPDX-License-Identifier: Apache-2.0
#include "process/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "base/error.h"

namespace saturate {

namespace {

// What a handler may touch: it can be given nothing else.
std::atomic<int> stop_signal_seen{0};
std::atomic<int> wake_fd{-1};

void wake(int) {
    int error = errno;
    [[maybe_unused]] ssize_t wrote = ::write(wake_fd, "", 1);
    errno = error;
}

void stop(int number) {
    int none = 0;
    if (!stop_signal_seen.compare_exchange_strong(none, number)) {
        // Asked a second time: whatever we are busy with, end now.
        ::signal(number, SIG_DFL);
        ::raise(number);
    }
    wake(number);
}

constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kWakes[] = {SIGCHLD, SIGWINCH};

}  // namespace

struct Interrupts::Impl {
    int read_fd = -1;
    struct sigaction stops[std::size(kStops)];
    struct sigaction wakes[std::size(kWakes)];
    struct sigaction pipe;
};

Interrupts::Interrupts() : impl_(std::make_unique<Impl>()) {
    int ends[2];
    SATURATE_CHECK(wake_fd == -1, "one Interrupts at a time");
    SATURATE_CHECK(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0, "a process can open two files more");
    impl_->read_fd = ends[0];
    stop_signal_seen = 0;
    wake_fd = ends[1];
    struct sigaction action {};
    action.sa_flags = SA_RESTART;
    action.sa_handler = stop;
    for (std::size_t i = 0; i < std::size(kStops); ++i) {
        ::sigaction(kStops[i], nullptr, &impl_->stops[i]);
        // What was ignored when we were started stays so: nohup keeps SIGHUP away.
        if (impl_->stops[i].sa_handler != SIG_IGN) ::sigaction(kStops[i], &action, nullptr);
    }
    action.sa_handler = wake;
    for (std::size_t i = 0; i < std::size(kWakes); ++i)
        ::sigaction(kWakes[i], &action, &impl_->wakes[i]);
    action.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &action, &impl_->pipe);
}

Interrupts::~Interrupts() {
    for (std::size_t i = 0; i < std::size(kStops); ++i)
        ::sigaction(kStops[i], &impl_->stops[i], nullptr);
    for (std::size_t i = 0; i < std::size(kWakes); ++i)
        ::sigaction(kWakes[i], &impl_->wakes[i], nullptr);
    ::sigaction(SIGPIPE, &impl_->pipe, nullptr);
    ::close(wake_fd.exchange(-1));
    ::close(impl_->read_fd);
}

int Interrupts::stop_signal() const { return stop_signal_seen; }

Interrupts::Woke Interrupts::wait_until(std::int64_t deadline_ns, int fd) {
    while (true) {
        std::int64_t left = deadline_ns - now_ns();
        if (left <= 0) return Woke::deadline;
        pollfd fds[2] = {{impl_->read_fd, POLLIN, 0}, {fd, POLLIN, 0}};
        timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
        int ready = ::ppoll(fds, fd >= 0 ? 2 : 1, &timeout, nullptr);
        if (ready <= 0) continue;  // time, or a signal whose byte the next turn finds
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
