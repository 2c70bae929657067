// SPDX-License-Identifier: Apache-2.0
#include "tuning/fix_rates.h"

#include <algorithm>
#include <cmath>

namespace saturate {

namespace {

constexpr double kSureGain = 1.15;     // a gain beyond this needs no second look
constexpr std::size_t kMostAfter = 3;  // of the change, where runs of the same differ

// The middle of rates that may differ by a factor.
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

std::string_view FixRates::word() const {
    if (ratio() >= kFixGain) return "kept";
    // Slower than the best of several runs is what most of them are.
    double least = after.size() > 1 ? middle_rate(before) : std::ranges::min(before);
    return middle_rate(after) <= least / kFixGain ? "slower" : "no gain";
}

}  // namespace saturate
