// SPDX-License-Identifier: Apache-2.0
// Limits the time that a connection of the web server may take. libmicrohttpd only closes silent
// connections; one byte every few seconds would keep them open for ever. This class shuts down the
// socket of a late connection, so that the library sees it closed. May be used from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace saturate {

class HttpDeadlines {
  public:
    HttpDeadlines();
    ~HttpDeadlines();  // shuts down no further sockets

    // Shuts the socket down when the time is over, unless it is set again or cleared before.
    void set(int fd, std::chrono::milliseconds time);
    // Call this before closing the socket: another connection may get its number afterwards.
    void clear(int fd);

  private:
    void work(const std::stop_token& stop);
    [[nodiscard]] Clock::time_point first() const;

    std::mutex mutex_;
    std::condition_variable_any is_earlier_;
    std::map<int, Clock::time_point> deadlines_;
    std::jthread thread_;  // last, because it uses the other members
};

}  // namespace saturate
