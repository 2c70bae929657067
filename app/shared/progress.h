// SPDX-License-Identifier: Apache-2.0
// Shows the progress of long work and the time left in one line of the terminal. Prints nothing if
// stderr is not a terminal. Used from one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace saturate {

// Returns " 42 %  about 12 s left: 4 workers"; without the time during the first second.
[[nodiscard]] std::string progress_text(std::string_view what, double done, double seconds_gone);

class Progress {
  public:
    explicit Progress(bool is_wanted = true);
    ~Progress();  // clears the line
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // `done` is from 0 to 1. Redraws at most five times a second, so call it as often as you like.
    void at(std::string_view what, double done);

  private:
    bool is_shown_;
    bool has_drawn_ = false;
    std::int64_t started_ns_, drawn_ns_ = 0;
};

}  // namespace saturate
