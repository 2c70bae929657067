// SPDX-License-Identifier: Apache-2.0
#include "telemetry/statistics.h"

#include <algorithm>
#include <cmath>

namespace saturate {

namespace {

constexpr double kLeast = 1e-3;
const double kBinWidth = std::log(1.01);

}  // namespace

// Welford's algorithm: without differences of large sums, it stays precise over a day of small
// changes.
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

void LogHistogram::add(double value) {
    if (!(value > 0)) return;
    auto bin = static_cast<int>(std::log(std::max(value, kLeast) / kLeast) / kBinWidth);
    ++counts_[static_cast<std::size_t>(std::clamp(bin, 0, kBins - 1))];
    ++n_;
}

std::optional<double> LogHistogram::quantile(double share) const {
    if (n_ == 0) return std::nullopt;
    auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(n_)));
    std::int64_t sum = 0;
    for (std::size_t bin = 0; bin < counts_.size(); ++bin) {
        sum += counts_[bin];
        if (sum >= std::max<std::int64_t>(wanted, 1))
            return kLeast * std::exp((static_cast<double>(bin) + 0.5) * kBinWidth);
    }
    return std::nullopt;
}

double quantile(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(values.size() - 1);
    auto below = values.begin() + static_cast<std::ptrdiff_t>(place);
    std::ranges::nth_element(values, below);
    double rest = place - std::floor(place);
    if (rest == 0) return *below;
    return *below + rest * (*std::min_element(below + 1, values.end()) - *below);
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

}  // namespace saturate
