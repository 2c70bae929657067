// SPDX-License-Identifier: Apache-2.0
// Fits straight lines through probes: memory(b) = a + c b and time(b) = a + c b. A straight line
// through small probes extrapolates well; a fit of logarithms can be wrong by half.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace saturate {

struct Point {
    double x = 0;
    double y = 0;
};

struct StraightLine {
    double at_zero = 0;   // never negative
    double per_unit = 0;  // never negative
    double error = 0;     // largest distance of a point, as a share of its y

    [[nodiscard]] double at(double x) const { return at_zero + per_unit * x; }
};

// Least squares of the relative distances, so that the smallest probe counts as much as the
// largest. Returns nothing for fewer than two different x.
[[nodiscard]] std::optional<StraightLine> fit_line(std::span<const Point> points);

// Returns the smallest b whose throughput b / time(b) is within `share` of the throughput at
// `most`.
[[nodiscard]] double knee(const StraightLine& time, double most, double share);

}  // namespace saturate
