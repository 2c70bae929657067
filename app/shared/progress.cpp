// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "show.h"

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

Progress::Progress(bool is_wanted)
    : is_shown_(is_wanted && ::isatty(STDERR_FILENO) == 1), started_ns_(now_ns()) {}

Progress::~Progress() {
    if (has_drawn_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::at(std::string_view what, double done) {
    constexpr std::int64_t kBetweenNs = 200'000'000;
    std::int64_t now = now_ns();
    if (!is_shown_ || (has_drawn_ && now - drawn_ns_ < kBetweenNs)) return;
    double gone = static_cast<double>(now - started_ns_) / 1e9;
    fmt::print(stderr, "\r\x1b[K{}", shown(progress_text(what, done, gone)));
    std::fflush(stderr);
    has_drawn_ = true;
    drawn_ns_ = now;
}

}  // namespace saturate
