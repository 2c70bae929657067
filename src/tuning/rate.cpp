// SPDX-License-Identifier: Apache-2.0
#include "tuning/rate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace saturate {

namespace {

constexpr double kWarmUpDiffers = 1.1;   // a start that differs by less than a tenth is none
constexpr double kFastStart = 0.25;      // of the steps: a start that is faster ends by then
constexpr double kExplained = 0.5;       // share of the variation that the split must explain
constexpr std::size_t kLeastSteady = 4;  // steps
constexpr std::size_t kLeastLong = 2;    // of so many seconds each: chance evens out within one
constexpr double kLongSeconds = 0.5;
constexpr std::size_t kBlocks = 16;

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
        if (std::abs(before - after) < std::log(kWarmUpDiffers)) break;
        // Steps that only fill the device's queue, or take batches that wait already, are fast; one
        // that goes on for long is a job that gets slower.
        auto most = static_cast<std::size_t>(kFastStart * static_cast<double>(n - start));
        if (before < after && best - start > most) break;
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
    std::size_t blocks = std::min(kBlocks, least == kLeastLong ? count : count / 2);
    std::vector<double> times(blocks), samples(blocks), rates;
    double waited = 0, copied = 0, logged = 0, busy = 0;
    bool tells_busy = true;
    for (std::size_t b = 0; b < blocks; ++b) {
        for (std::size_t i = from + b * count / blocks; i < from + (b + 1) * count / blocks; ++i) {
            times[b] += seconds[i];
            samples[b] += static_cast<double>(*used[i]->samples);
            waited += static_cast<double>(used[i]->input_wait_ns.value_or(0)) / 1e9;
            copied += static_cast<double>(used[i]->copy_ns.value_or(0)) / 1e9;
            logged += static_cast<double>(used[i]->log_ns.value_or(0)) / 1e9;
            busy += static_cast<double>(used[i]->device_busy_ns.value_or(0)) / 1e9;
            tells_busy &= used[i]->device_busy_ns.has_value();
        }
    }
    double total = std::accumulate(times.begin(), times.end(), 0.0);
    auto rate_of = [&](std::size_t begin, std::size_t end) {
        auto sum = [&](const std::vector<double>& of) {
            return std::accumulate(of.begin() + static_cast<std::ptrdiff_t>(begin),
                                   of.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
        };
        return sum(samples) / sum(times);
    };
    // Each window is half of the steps: the host runs ahead of a device and waits for it in turns,
    // and only over many steps is that even.
    std::size_t half = std::max<std::size_t>(1, blocks / 2);
    for (std::size_t b = 0; b + half <= blocks; ++b) rates.push_back(rate_of(b, b + half));
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
    std::size_t third = std::max<std::size_t>(1, blocks / 3);
    rate.trend = rate_of(0, third) / rate_of(blocks - third, blocks) - 1;
    return rate;
}

bool is_known_well(const Rate& rate) { return rate.n >= 6 && rate.spread() <= 0.03; }

bool is_hopeless(const Rate& rate, double least) { return rate.n >= 4 && rate.high < least; }

}  // namespace saturate
