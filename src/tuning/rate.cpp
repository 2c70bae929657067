// SPDX-License-Identifier: Apache-2.0
#include "tuning/rate.h"

#include <algorithm>
#include <cmath>

namespace saturate {

namespace {

constexpr double kWarmUpIsSlower = 1.1;  // a start less than a tenth slower is no warm-up
constexpr double kExplained = 0.5;       // share of the variation that the split must explain
constexpr std::size_t kLeastSteady = 4;  // steps
constexpr std::size_t kLeastLong = 2;    // of so many seconds each: chance evens out within one
constexpr double kLongSeconds = 0.5;
constexpr int kWindows = 8;

double median_of(std::vector<double> values) {
    if (values.empty()) return 0;
    std::size_t half = values.size() / 2;
    std::ranges::sort(values);
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::size_t least_steady(std::span<const double> seconds) {
    return median_of({seconds.begin(), seconds.end()}) >= kLongSeconds ? kLeastLong : kLeastSteady;
}

}  // namespace

std::size_t steady_from(std::span<const double> seconds) {
    // Logarithms, so that one long pause does not outweigh a hundred steps. Prefix sums make every
    // split a constant amount of work.
    std::size_t n = seconds.size();
    if (n < 2 * kLeastSteady) return n > least_steady(seconds) ? 1 : 0;
    std::vector<double> sum(n + 1), square(n + 1);
    for (std::size_t i = 0; i < n; ++i) {
        double value = std::log(std::max(seconds[i], 1e-9));
        sum[i + 1] = sum[i] + value;
        square[i + 1] = square[i] + value * value;
    }
    auto variation = [&](std::size_t from, std::size_t to) {
        double count = static_cast<double>(to - from);
        double total = sum[to] - sum[from];
        return square[to] - square[from] - total * total / count;
    };
    std::size_t start = 0;
    // Compiling, then filling caches: a second change may lie behind the first.
    for (int turn = 0; turn < 3; ++turn) {
        double whole = variation(start, n);
        std::size_t best = start;
        double least = whole;
        for (std::size_t split = start + 1;
             split + kLeastSteady <= n && split <= start + (n - start) / 2; ++split) {
            double both = variation(start, split) + variation(split, n);
            if (both < least) {
                least = both;
                best = split;
            }
        }
        if (best == start || whole <= 0 || least > (1 - kExplained) * whole) break;
        double before = (sum[best] - sum[start]) / static_cast<double>(best - start);
        double after = (sum[n] - sum[best]) / static_cast<double>(n - best);
        if (before - after < std::log(kWarmUpIsSlower)) break;
        start = best;
    }
    return start;
}

std::optional<Rate> steady_rate(std::span<const StepRecord> steps) {
    // From start to start: what lies between two steps (reading a loss, an event) is part of the
    // cost. A pause for evaluation or a checkpoint is not of the step and is left out.
    std::vector<double> seconds;
    std::vector<const StepRecord*> used;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const StepRecord& step = steps[i];
        if (!step.samples || step.duration_ns <= 0) continue;
        double own = static_cast<double>(step.duration_ns) / 1e9;
        double whole = own;
        if (i + 1 < steps.size()) {
            double to_next = static_cast<double>(steps[i + 1].start_ns - step.start_ns) / 1e9;
            if (to_next > own && to_next < 1.5 * own) whole = to_next;
        }
        seconds.push_back(whole);
        used.push_back(&step);
    }
    std::size_t from = steady_from(seconds);
    std::size_t least = least_steady(seconds);
    if (seconds.size() < from + least) return std::nullopt;
    Rate rate;
    rate.dropped = static_cast<std::int64_t>(from);
    rate.steps = static_cast<std::int64_t>(seconds.size() - from);

    std::size_t count = seconds.size() - from;
    std::size_t windows = std::min<std::size_t>(kWindows, least == kLeastLong ? count : count / 2);
    std::vector<double> rates;
    double waited = 0, copied = 0, logged = 0, busy = 0, total = 0;
    bool tells_busy = true;
    for (std::size_t w = 0; w < windows; ++w) {
        double time = 0, samples = 0;
        for (std::size_t i = from + w * count / windows; i < from + (w + 1) * count / windows;
             ++i) {
            time += seconds[i];
            samples += static_cast<double>(*used[i]->samples);
            waited += static_cast<double>(used[i]->input_wait_ns.value_or(0)) / 1e9;
            copied += static_cast<double>(used[i]->copy_ns.value_or(0)) / 1e9;
            logged += static_cast<double>(used[i]->log_ns.value_or(0)) / 1e9;
            busy += static_cast<double>(used[i]->device_busy_ns.value_or(0)) / 1e9;
            tells_busy &= used[i]->device_busy_ns.has_value();
        }
        total += time;
        rates.push_back(samples / time);
    }
    rate.n = static_cast<int>(rates.size());
    rate.low = *std::ranges::min_element(rates);
    rate.high = *std::ranges::max_element(rates);
    rate.median = median_of(rates);
    rate.step_seconds =
        median_of({seconds.begin() + static_cast<std::ptrdiff_t>(from), seconds.end()});
    if (total > 0) {
        rate.input_wait_share = waited / total;
        rate.copy_share = copied / total;
        rate.log_share = logged / total;
        if (tells_busy) rate.device_busy_share = std::min(1.0, busy / total);
    }
    std::size_t third = std::max<std::size_t>(1, windows / 3);
    double early = median_of({rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(third)});
    double late = median_of({rates.end() - static_cast<std::ptrdiff_t>(third), rates.end()});
    rate.trend = late > 0 ? early / late - 1 : 0;
    return rate;
}

bool is_known_well(const Rate& rate) { return rate.n >= 6 && rate.spread() <= 0.03; }

bool is_hopeless(const Rate& rate, double least) { return rate.n >= 4 && rate.high < least; }

}  // namespace saturate
