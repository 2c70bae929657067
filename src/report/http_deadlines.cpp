// SPDX-License-Identifier: Apache-2.0
#include "report/http_deadlines.h"

#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>

namespace saturate {

HttpDeadlines::HttpDeadlines() : thread_([this](const std::stop_token& stop) { work(stop); }) {}

HttpDeadlines::~HttpDeadlines() = default;

void HttpDeadlines::set(int fd, std::chrono::milliseconds time) {
    Clock::time_point deadline = Clock::now() + time;
    std::lock_guard lock(mutex_);
    bool is_first = deadlines_.empty() || deadline < first();
    deadlines_[fd] = deadline;
    if (is_first) is_earlier_.notify_one();
}

void HttpDeadlines::clear(int fd) {
    std::lock_guard lock(mutex_);
    deadlines_.erase(fd);
}

Clock::time_point HttpDeadlines::first() const {
    return std::ranges::min_element(deadlines_, {}, [](const auto& entry) { return entry.second; })
        ->second;
}

void HttpDeadlines::work(const std::stop_token& stop) {
    ::pthread_setname_np(::pthread_self(), "http-deadlines");
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        if (deadlines_.empty()) {
            is_earlier_.wait(lock, stop, [&] { return !deadlines_.empty(); });
            continue;
        }
        Clock::time_point until = first();
        is_earlier_.wait_until(lock, stop, until,
                               [&] { return !deadlines_.empty() && first() < until; });
        Clock::time_point now = Clock::now();
        // Shut down under the lock: clear() comes before the socket is closed.
        std::erase_if(deadlines_, [&](const auto& entry) {
            if (entry.second > now) return false;
            ::shutdown(entry.first, SHUT_RDWR);
            return true;
        });
    }
}

}  // namespace saturate
