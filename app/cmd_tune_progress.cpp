// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "tune_progress.h"

namespace saturate {

namespace {

std::string clock_text(double seconds) {
    auto whole = static_cast<long>(seconds);
    return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

TuneProgress::TuneProgress(bool quiet, double budget_seconds)
    : quiet_(quiet), on_terminal_(::isatty(STDERR_FILENO) != 0), budget_seconds_(budget_seconds) {}

void TuneProgress::line(const std::string& text) {
    if (quiet_) return;
    fmt::print(stderr, "{}{}\n", on_terminal_ ? "\r\x1b[K" : "", text);
    std::fflush(stderr);
}

void TuneProgress::working(const std::string& what, double seconds) {
    if (quiet_ || !on_terminal_) return;
    fmt::print(stderr, "\r\x1b[K{} of at most {}  {} ...", clock_text(seconds),
               clock_text(budget_seconds_), what);
    std::fflush(stderr);
}

}  // namespace saturate
