// SPDX-License-Identifier: Apache-2.0
// The time that a connection of the web server has for what it is at. libmicrohttpd ends
// connections that are silent; one byte every few seconds keeps them for ever. Whoever is late has
// its socket shut down here, and the library then sees it closed. Any thread.
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
    ~HttpDeadlines();  // nobody is shut down any more

    // Shuts the socket down when the time is over, unless it was given another time or cleared.
    void set(int fd, std::chrono::milliseconds time);
    // Before the socket is closed: its number may be another's afterwards.
    void clear(int fd);

  private:
    void work(const std::stop_token& stop);
    [[nodiscard]] Clock::time_point first() const;

    std::mutex mutex_;
    std::condition_variable_any is_earlier_;
    std::map<int, Clock::time_point> deadlines_;
    std::jthread thread_;  // last: it uses the rest
};

}  // namespace saturate
