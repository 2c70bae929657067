// SPDX-License-Identifier: Apache-2.0
// One line on a terminal that says how far long work is and how much time is left; nothing where
// stderr is no terminal. Used from one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace saturate {

// " 42 %  about 12 s left: 4 workers"; the time once the work has gone on for a second.
[[nodiscard]] std::string progress_text(std::string_view what, double done, double seconds_gone);

class Progress {
  public:
    explicit Progress(bool is_wanted = true);
    ~Progress();  // clears the line
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // `done` from 0 to 1. Redrawn five times a second at most, so it may be called for each file.
    void at(std::string_view what, double done);

  private:
    bool is_shown_;
    bool has_drawn_ = false;
    std::int64_t started_ns_, drawn_ns_ = 0;
};

}  // namespace saturate
