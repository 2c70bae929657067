// SPDX-License-Identifier: Apache-2.0
#include "tuning/pauses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/figures.h"
#include "base/text.h"
#include "tuning/moves.h"

namespace saturate {

namespace {

constexpr double kAim = 0.02;         // share of the time that pauses should take in the end
constexpr double kLongestTimes = 10;  // an interval may grow at most by this factor
constexpr double kLeastLeft = 3;      // evaluations or checkpoints that remain in a training run

struct Interval {
    const char* cause;
    const char* key;
    bool by_epochs;
};
constexpr std::array<Interval, 4> kIntervals = {{{"evaluation", "eval_interval", true},
                                                 {"evaluation", "eval_steps", false},
                                                 {"checkpoint", "checkpoint_interval", true},
                                                 {"checkpoint", "checkpoint_steps", false}}};

double number_of(const Assignment& settings, const std::string& key) {
    return parse_number(value_of(settings, key)).value_or(0);
}

std::optional<double> shorter(std::optional<double> known, double seconds) {
    return std::min(known.value_or(seconds), seconds);
}

}  // namespace

Pauses pauses_of(const RunRecord& record) {
    Pauses out;
    for (const EventRecord& event : record.events) {
        if (!event.duration_ns) continue;
        double seconds = static_cast<double>(*event.duration_ns) / 1e9;
        if (event.kind == EventKind::evaluation) out.evaluation = shorter(out.evaluation, seconds);
        // An event with a path comes from the writer thread; training goes on meanwhile.
        if (event.kind == EventKind::checkpoint && !event.values["path"].string())
            out.checkpoint = shorter(out.checkpoint, seconds);
    }
    return out;
}

std::string pauses_text(const Pauses& pauses) {
    std::vector<std::string> parts;
    if (pauses.evaluation)
        parts.push_back(fmt::format("evaluation {}", seconds_text(*pauses.evaluation)));
    if (pauses.checkpoint)
        parts.push_back(fmt::format("checkpoint {}", seconds_text(*pauses.checkpoint)));
    return join(parts, ", ");
}

std::vector<LongerInterval> longer_intervals(const Assignment& settings, const Pauses& pauses,
                                             double rate, double samples_per_epoch, double least) {
    std::vector<LongerInterval> out;
    if (rate <= 0 || samples_per_epoch <= 0) return out;
    double accumulation = std::max(1.0, number_of(settings, "gradient_accumulation_steps"));
    double step_samples = std::max(1.0, number_of(settings, "batch_size")) * accumulation;
    for (const Interval& interval : kIntervals) {
        bool is_evaluation = std::string_view(interval.cause) == "evaluation";
        double pause = (is_evaluation ? pauses.evaluation : pauses.checkpoint).value_or(0);
        double every = number_of(settings, interval.key);
        if (pause <= 0 || every <= 0) continue;
        double unit = (interval.by_epochs ? samples_per_epoch : step_samples) / rate;
        double between = every * unit;
        double share = pause / (pause + between);
        if (share < least) continue;
        double wanted = std::ceil(pause * (1 / kAim - 1) / unit);
        wanted = std::min(wanted, kLongestTimes * every);
        if (double epochs = number_of(settings, "epochs"); epochs > 0) {
            double units = interval.by_epochs ? epochs : epochs * samples_per_epoch / step_samples;
            wanted = std::min(wanted, std::floor(units / kLeastLeft));
        }
        if (wanted <= every) continue;
        LongerInterval longer{
            .cause = interval.cause, .key = interval.key, .value = fmt::format("{:.0f}", wanted)};
        longer.ratio = (pause + between) / (pause * every / wanted + between);
        longer.reason =
            fmt::format("{} of {} after every {} of training: {:.0f} % of the time",
                        seconds_text(pause), interval.cause, seconds_text(between), 100 * share);
        if (is_evaluation && number_of(settings, "early_stopping") > 0)
            longer.trade = "early_stopping is counted in evaluations";
        out.push_back(std::move(longer));
    }
    return out;
}

bool is_interval(const std::string& key) {
    return std::ranges::any_of(kIntervals, [&](const Interval& known) { return known.key == key; });
}

}  // namespace saturate
