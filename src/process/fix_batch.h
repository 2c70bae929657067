// SPDX-License-Identifier: Apache-2.0
// The batch size of the user's job as `tune` finds it, with the learning rate that follows it, on
// the places of the user's files that set them.
#pragma once

#include <optional>
#include <string>

#include "process/fix_measure.h"

namespace saturate {

struct FixBatch {
    std::optional<FixProposal> proposal;  // absent: no other size was found
    FixOutcome outcome;
    double rate = 0;      // samples/s with it
    std::string refused;  // why no size was searched for; empty: it was
    bool has_no_time = false;
};

// Beside the changes that were kept; `best`: samples/s with them.
[[nodiscard]] FixBatch find_fix_batch(FixMeasure& measure, const FixAnswer& answer,
                                      const FixQuestion& question, const FixTrialSettings& settings,
                                      const FixChanges& kept, double best);

}  // namespace saturate
