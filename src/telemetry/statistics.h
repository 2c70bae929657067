// SPDX-License-Identifier: Apache-2.0
// Statistics that take one value at a time and stay small however long a run lasts: a mean and
// deviation weighted by time, and a histogram for percentiles.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace saturate {

class Running {
  public:
    void add(double value, double weight = 1);
    [[nodiscard]] std::int64_t n() const { return n_; }
    // Nothing without values.
    [[nodiscard]] std::optional<double> mean() const;
    [[nodiscard]] std::optional<double> deviation() const;  // standard, of the population
    [[nodiscard]] std::optional<double> least() const;
    [[nodiscard]] std::optional<double> most() const;

  private:
    std::int64_t n_ = 0;
    double weight_ = 0, mean_ = 0, squares_ = 0, least_ = 0, most_ = 0;
};

// Percent from 0 to 100 in steps of half a point.
class PercentHistogram {
  public:
    void add(double percent, double weight = 1);
    // The value below which `share` (0 to 1) of the weight lies; nothing without values.
    [[nodiscard]] std::optional<double> quantile(double share) const;

  private:
    static constexpr int kBins = 201;
    std::array<double, kBins> weights_{};
    double total_ = 0;
};

}  // namespace saturate
