// SPDX-License-Identifier: Apache-2.0
#include "telemetry/statistics.h"

#include <algorithm>
#include <cmath>

namespace saturate {

// Welford's way: no difference of large sums, so that a day of small changes keeps its digits.
void Running::add(double value, double weight) {
    if (!std::isfinite(value) || !(weight > 0)) return;
    least_ = n_ == 0 ? value : std::min(least_, value);
    most_ = n_ == 0 ? value : std::max(most_, value);
    ++n_;
    weight_ += weight;
    double off = value - mean_;
    mean_ += off * weight / weight_;
    squares_ += weight * off * (value - mean_);
}

std::optional<double> Running::mean() const { return n_ > 0 ? std::optional(mean_) : std::nullopt; }
std::optional<double> Running::deviation() const {
    return n_ > 0 ? std::optional(std::sqrt(std::max(0.0, squares_ / weight_))) : std::nullopt;
}
std::optional<double> Running::least() const {
    return n_ > 0 ? std::optional(least_) : std::nullopt;
}
std::optional<double> Running::most() const { return n_ > 0 ? std::optional(most_) : std::nullopt; }

void PercentHistogram::add(double percent, double weight) {
    if (!std::isfinite(percent) || !(weight > 0)) return;
    auto bin = static_cast<int>(std::lround(std::clamp(percent, 0.0, 100.0) * 2));
    weights_[static_cast<std::size_t>(bin)] += weight;
    total_ += weight;
}

std::optional<double> PercentHistogram::quantile(double share) const {
    if (!(total_ > 0)) return std::nullopt;
    double below = 0;
    for (int bin = 0; bin < kBins; ++bin) {
        below += weights_[static_cast<std::size_t>(bin)];
        if (below >= share * total_) return bin / 2.0;
    }
    return 100;
}

}  // namespace saturate
