// SPDX-License-Identifier: Apache-2.0
#include "tuning/fit.h"

#include <algorithm>
#include <cmath>

namespace saturate {

std::optional<StraightLine> fit_line(std::span<const Point> points) {
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (const Point& p : points) {
        if (p.y <= 0) continue;
        double weight = 1 / (p.y * p.y);
        w += weight;
        wx += weight * p.x;
        wy += weight * p.y;
        wxx += weight * p.x * p.x;
        wxy += weight * p.x * p.y;
    }
    double determinant = w * wxx - wx * wx;
    if (w <= 0 || determinant <= 1e-12 * w * wxx) return std::nullopt;
    StraightLine line{.at_zero = (wy * wxx - wx * wxy) / determinant,
                      .per_unit = (w * wxy - wx * wy) / determinant};
    // Neither part can be negative. If one would be, the other alone explains the points.
    if (line.per_unit < 0) line = {.at_zero = wy / w};
    if (line.at_zero < 0) line = {.per_unit = wxy / wxx};
    for (const Point& p : points) {
        if (p.y > 0) line.error = std::max(line.error, std::abs(line.at(p.x) - p.y) / p.y);
    }
    return line;
}

double knee(const StraightLine& time, double most, double share) {
    // b / (a + c b) >= (1 - share) M / (a + c M), solved for b.
    double reach = (1 - share) * most / time.at(most);
    double left = 1 - reach * time.per_unit;
    if (left <= 0) return most;
    return std::min(most, reach * time.at_zero / left);
}

}  // namespace saturate
