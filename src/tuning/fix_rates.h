// SPDX-License-Identifier: Apache-2.0
// Whether a change of the user's job gains, by the rates of its runs and of what was kept before. A
// machine that others use makes single runs of one job differ by more than a change gives: those are
// open until both were measured again. Pure.
#pragma once

#include <string_view>
#include <vector>

namespace saturate {

constexpr double kFixGain = 1.03;  // less is not worth a change

struct FixRates {
    std::vector<double> before, after;  // samples/s, one per run

    // Whether another run of what was kept before could decide it the other way.
    [[nodiscard]] bool is_open() const;
    // ... and another run of the change as well: runs of the same differ too much.
    [[nodiscard]] bool is_uneven() const;
    // After over before. Of a single run it is over the best of those before.
    [[nodiscard]] double ratio() const;
    [[nodiscard]] std::string_view word() const;  // kept, no gain, slower
};

}  // namespace saturate
