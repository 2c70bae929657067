// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "show.h"
#include "words/terminal.h"

namespace saturate {

std::string progress_text(std::string_view what, double done, double seconds_gone) {
    done = std::clamp(done, 0.0, 1.0);
    std::string out = fmt::format("{:3.0f} %", 100 * done);
    if (seconds_gone >= 1 && done > 0.02) {
        double left = seconds_gone * (1 - done) / done;
        out += left < 90 ? fmt::format("  about {:.0f} s left", left)
                         : fmt::format("  about {:.0f} min left", left / 60);
    }
    return out + fmt::format(": {}", what);
}

std::string search_progress_text(std::string_view what, double seconds_gone,
                                 double budget_seconds) {
    auto clock = [](double seconds) {
        auto whole = static_cast<long>(std::max(seconds, 0.0));
        return fmt::format("{}:{:02}", whole / 60, whole % 60);
    };
    return fmt::format("{}, at most {} left: {}", clock(seconds_gone),
                       clock(budget_seconds - seconds_gone), what);
}

void draw_line(std::string_view english) {
    // A line that the terminal breaks cannot be drawn over.
    std::string line = fitted(shown(english), columns_of(stderr) - 1);
    fmt::print(stderr, "\r\x1b[K{}", split(line, '\n')[0]);
    std::fflush(stderr);
}

Progress::Progress(bool is_wanted)
    : is_shown_(is_wanted && ::isatty(STDERR_FILENO) == 1), started_ns_(now_ns()) {}

Progress::~Progress() {
    if (has_drawn_) draw_line("");
}

void Progress::at(std::string_view what, double done) {
    constexpr std::int64_t kBetweenNs = 200'000'000;
    std::int64_t now = now_ns();
    if (!is_shown_ || (has_drawn_ && now - drawn_ns_ < kBetweenNs)) return;
    double gone = static_cast<double>(now - started_ns_) / 1e9;
    draw_line(progress_text(what, done, gone));
    has_drawn_ = true;
    drawn_ns_ = now;
}

SearchProgress::SearchProgress(bool is_quiet, double budget_seconds)
    : is_quiet_(is_quiet),
      is_drawn_(!is_quiet && ::isatty(STDERR_FILENO) == 1),
      budget_seconds_(budget_seconds) {}

void SearchProgress::end() {
    if (std::exchange(has_drawn_, false)) draw_line("");
}

void SearchProgress::line(std::string_view text) {
    if (is_quiet_) return;
    end();
    show(stderr, "{}\n", text);
    std::fflush(stderr);
}

void SearchProgress::working(std::string_view what, double seconds_gone) {
    constexpr std::int64_t kBetweenNs = 1'000'000'000;
    std::int64_t now = now_ns();
    if (!is_drawn_ || (has_drawn_ && what == what_ && now - drawn_ns_ < kBetweenNs)) return;
    draw_line(search_progress_text(what, seconds_gone, budget_seconds_));
    has_drawn_ = true;
    drawn_ns_ = now;
    what_ = what;
}

}  // namespace saturate
