// SPDX-License-Identifier: Apache-2.0
// Statistics in bounded memory: mean and deviation weighted by time, and histograms for
// percentiles. quantile() and median() take all values at once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace saturate {

class Running {
  public:
    void add(double value, double weight = 1);
    // Ignores an unknown value.
    void add(const std::optional<double>& value, double weight) {
        if (value) add(*value, weight);
    }
    [[nodiscard]] std::int64_t n() const { return n_; }
    // All return nullopt without values.
    [[nodiscard]] std::optional<double> mean() const;
    [[nodiscard]] std::optional<double> deviation() const;  // standard deviation of the population
    [[nodiscard]] std::optional<double> least() const;
    [[nodiscard]] std::optional<double> most() const;

  private:
    std::int64_t n_ = 0;
    double weight_ = 0, mean_ = 0, squares_ = 0, least_ = 0, most_ = 0;
};

// A histogram of percentages from 0 to 100, in steps of half a point.
class PercentHistogram {
  public:
    void add(double percent, double weight = 1);
    // Returns the value below which `share` (0 to 1) of the weight lies, or nullopt without values.
    [[nodiscard]] std::optional<double> quantile(double share) const;

  private:
    static constexpr int kBins = 201;
    std::array<double, kBins> weights_{};
    double total_ = 0;
};

// A histogram of positive values of any size, with a resolution of 1 %.
class LogHistogram {
  public:
    void add(double value);
    [[nodiscard]] std::optional<double> quantile(double share) const;
    [[nodiscard]] std::int64_t n() const { return n_; }

  private:
    static constexpr int kBins = 4096;  // 1 % each, from 0.001 to 5e14: 5.8 days in ns
    std::array<std::uint32_t, kBins> counts_{};
    std::int64_t n_ = 0;
};

// Returns the value below which `share` (0 to 1) of the values lies, interpolated between two
// neighbours, or 0 without values.
[[nodiscard]] double quantile(std::vector<double> values, double share);
[[nodiscard]] double median(std::vector<double> values);

}  // namespace saturate
