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
// "1:10, at most 3:50 left: search: num_workers=4"
[[nodiscard]] std::string search_progress_text(std::string_view what, double seconds_gone,
                                               double budget_seconds);

// In place of the line that was drawn before, no wider than the terminal; "" clears it.
void draw_line(std::string_view english);

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

// What a search says while it works, on stderr: a line per trial, and on a terminal what is being
// measured now and how much of the budget is left.
class SearchProgress {
  public:
    SearchProgress(bool is_quiet, double budget_seconds);
    ~SearchProgress() { end(); }
    SearchProgress(const SearchProgress&) = delete;
    SearchProgress& operator=(const SearchProgress&) = delete;

    void line(std::string_view text);
    // Again and again while it goes on: redrawn once a second.
    void working(std::string_view what, double seconds_gone);
    void end();  // clears what was drawn

  private:
    bool is_quiet_, is_drawn_;
    double budget_seconds_;
    bool has_drawn_ = false;
    std::int64_t drawn_ns_ = 0;
    std::string what_;
};

}  // namespace saturate
