// SPDX-License-Identifier: Apache-2.0
#include "pipeline/loader_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/clock.h"

namespace saturate {

namespace {

constexpr std::int64_t kNoteEveryNs = 5'000'000'000;

double percent(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

std::string why_slow(const LoaderStats& s) {
    // Waiting for less than 3 % of the time is not worth reporting.
    if (percent(s.consumer_wait_ns, s.elapsed_ns) < 3 || s.busy_ns <= 0) return "";
    struct Part {
        const char* name;
        std::int64_t ns;
        const char* fix;
    };
    std::int64_t other_ns =
        std::max<std::int64_t>(s.busy_ns - s.read_ns - s.decode_ns - s.transform_ns, 0);
    std::array<Part, 4> parts{{{"read", s.read_ns, "faster storage, cache"},
                               {"decode", s.decode_ns, "fewer pixels, cache"},
                               {"transform", s.transform_ns, "fewer or cheaper transforms"},
                               {"copy", other_ns, "smaller samples"}}};
    const Part& worst = *std::ranges::max_element(parts, {}, &Part::ns);
    std::string what = fmt::format("{} {:.0f} %", worst.name, percent(worst.ns, s.busy_ns));
    if (s.workers == 0)
        return fmt::format("{}, no workers: num_workers: auto loads while the model trains", what);
    double busy = percent(s.busy_ns, s.elapsed_ns * s.workers);
    if (s.workers < s.cores)
        return fmt::format("{}, {} worker{} {:.0f} % busy on {} cores: more workers, {}", what,
                           s.workers, s.workers == 1 ? "" : "s", busy, s.cores, worst.fix);
    if (busy < 80)
        return fmt::format("{}, {} workers {:.0f} % busy on {} cores: a larger prefetch_factor",
                           what, s.workers, busy, s.cores);
    return fmt::format("{}, {} of {} cores full: {}, or more cores", what, s.cores, s.cores,
                       worst.fix);
}

Json loader_json(const LoaderStats& s) {
    auto each_us = [&](std::int64_t ns) {
        return s.samples > 0 ? Json(static_cast<double>(ns) / 1000 / static_cast<double>(s.samples))
                             : Json();
    };
    return Json::object({{"batches", s.batches},
                         {"samples", s.samples},
                         {"bad_samples", s.bad_samples},
                         {"retries", s.retries},
                         {"workers", s.workers},
                         {"cores", s.cores},
                         {"memory_bytes", s.memory_bytes},
                         {"read_bytes", s.read_bytes},
                         {"cache_hits", s.cache_hits},
                         {"elapsed_ns", s.elapsed_ns},
                         {"consumer_wait_ns", s.consumer_wait_ns},
                         {"worker_wait_ns", s.worker_wait_ns},
                         {"busy_ns", s.busy_ns},
                         {"read_us_per_sample", each_us(s.read_ns)},
                         {"decode_us_per_sample", each_us(s.decode_ns)},
                         {"transform_us_per_sample", each_us(s.transform_ns)},
                         {"busy_us_per_sample", each_us(s.busy_ns)}});
}

void LoaderReporter::write_now_and_then(const LoaderStats& stats) {
    if (now_ns() - last_ns_ >= kNoteEveryNs) write(stats);
}

void LoaderReporter::write(const LoaderStats& stats) {
    if (stats.batches == 0) return;
    last_ns_ = now_ns();
    std::string reason = why_slow(stats);
    std::string text =
        fmt::format("loader: {} samples, waited for {:.1f} % of the time", stats.samples,
                    percent(stats.consumer_wait_ns, stats.elapsed_ns));
    if (!reason.empty()) text += " (" + reason + ")";
    recorder_.event({.kind = EventKind::note,
                     .time_ns = last_ns_,
                     .text = text,
                     .values = Json::object({{"loader", loader_json(stats)}})});
}

}  // namespace saturate
