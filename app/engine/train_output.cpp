// SPDX-License-Identifier: Apache-2.0
#include "train_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/clock.h"
#include "base/figures.h"
#include "base/text.h"
#include "progress.h"
#include "show.h"

namespace saturate {

std::string duration_text(double seconds) {
    if (seconds < 100) return fmt::format("{:.0f} s", seconds);
    if (seconds < 6000) return fmt::format("{:.0f} min", seconds / 60);
    auto minutes = static_cast<std::int64_t>(seconds / 60);
    return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

namespace {

std::string of(const std::optional<std::int64_t>& all) {
    return all ? fmt::format("/{}", *all) : std::string();
}

}  // namespace

std::string place_text(const TrainPlace& place) {
    std::string out = fmt::format("step {}{}", place.step, of(place.steps));
    if (place.seconds_left) out += fmt::format("  {} left", duration_text(*place.seconds_left));
    return out;
}

std::string progress_text(const TrainProgress& progress) {
    std::string out = fmt::format("epoch {}{}  step {}{}  loss ", progress.epoch + 1,
                                  of(progress.epochs), progress.step, of(progress.steps));
    out += progress.loss ? fmt::format("{:.4g}", *progress.loss) : "-";
    out += fmt::format("  {} samples/s  ", rate_text(progress.samples_per_second));
    if (progress.busy_percent) out += fmt::format("busy {:.0f} %  ", *progress.busy_percent);
    out += fmt::format("input wait {:.0f} %  memory {}", progress.input_wait_percent,
                       bytes_text(progress.memory_bytes));
    if (progress.seconds_left)
        out += fmt::format("  {} left", duration_text(*progress.seconds_left));
    return out;
}

TrainOutput::TrainOutput(Signals& interrupts, bool quiet)
    : interrupts_(interrupts), quiet_(quiet), on_terminal_(::isatty(2) != 0) {}

TrainOutput::~TrainOutput() { end_line(); }

void TrainOutput::end_line() {
    if (line_open_) show(stderr, "\n");
    line_open_ = false;
}

void TrainOutput::progress(const TrainProgress& progress) {
    // Fast jobs log a thousand times a second. Nobody can read that, and printing costs time.
    std::int64_t now = now_ns(), apart = on_terminal_ ? 100'000'000 : 2'000'000'000;
    if (quiet_ || (last_ns_ > 0 && now - last_ns_ < apart)) return;
    last_ns_ = now;
    last_ = progress;
    std::string line = progress_text(progress);
    if (on_terminal_) {
        draw_line(line);
        line_open_ = true;
    } else {
        show(stderr, "{}\n", line);
    }
    std::fflush(stderr);
}

// Steps of a second are too slow to wait for the next fifty of them.
bool TrainOutput::stop_wanted(const TrainPlace& place) {
    constexpr std::int64_t kApartNs = 1'000'000'000;
    if (std::int64_t now = now_ns(); on_terminal_ && !quiet_ && now - last_ns_ >= kApartNs) {
        last_ns_ = now;
        line_open_ = true;
        if (last_) {
            last_->step = place.step;
            last_->seconds_left = place.seconds_left;
        }
        draw_line(last_ ? progress_text(*last_) : place_text(place));
    }
    return interrupts_.stop_signal() != 0;
}

void TrainOutput::say(const std::string& line) {
    if (quiet_) return;
    end_line();
    show(stderr, "{}\n", line);
}

}  // namespace saturate
