// SPDX-License-Identifier: Apache-2.0
// Decides from the rates of runs whether a change of the user's job gains over what was kept
// before. On a shared machine single runs of one job differ by more than a change gives. Such a
// result stays open until both were measured again. Pure.
#pragma once

#include <vector>

#include "project/fix_answer.h"

namespace saturate {

constexpr double kFixGain = 1.03;  // a smaller gain is not worth a change

struct FixRates {
    std::vector<double> before, after;  // samples/s, one per run

    // True if another run of the settings kept before could turn the decision.
    [[nodiscard]] bool is_open() const;
    // True if runs of the same settings differ so much that the change needs another run too.
    [[nodiscard]] bool is_uneven() const;
    // After over before. A single run is compared with the best run before.
    [[nodiscard]] double ratio() const;
    [[nodiscard]] FixResult result() const;  // kept, no gain, slower
};

}  // namespace saturate
