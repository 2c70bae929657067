// SPDX-License-Identifier: Apache-2.0
#include "tuning/fix_rates.h"

#include <algorithm>
#include <cmath>

namespace saturate {

namespace {

constexpr double kSureGain = 1.15;     // a larger gain needs no second run
constexpr std::size_t kMostAfter = 3;  // runs of the change, if runs of the same settings differ

// The geometric mean, because rates may differ by a factor.
double middle_rate(const std::vector<double>& rates) {
    double sum = 0;
    for (double rate : rates) sum += std::log(rate);
    return std::exp(sum / static_cast<double>(rates.size()));
}

}  // namespace

bool FixRates::is_open() const {
    double now = middle_rate(after);
    return after.size() < kMostAfter && now >= kFixGain * std::ranges::min(before) &&
           now < kSureGain * std::ranges::max(before);
}

bool FixRates::is_uneven() const {
    return std::ranges::max(before) > kSureGain * std::ranges::min(before);
}

double FixRates::ratio() const {
    return middle_rate(after) / (after.size() > 1 ? middle_rate(before) : std::ranges::max(before));
}

FixResult FixRates::result() const {
    if (ratio() >= kFixGain) return FixResult::kept;
    // A single run must be slower than every run before: most runs are slower than the best one.
    double least = after.size() > 1 ? middle_rate(before) : std::ranges::min(before);
    return middle_rate(after) <= least / kFixGain ? FixResult::slower : FixResult::no_gain;
}

}  // namespace saturate
