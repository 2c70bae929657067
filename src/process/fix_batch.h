// SPDX-License-Identifier: Apache-2.0
// Finds the batch size of the user's job as `tune` does, with the matching learning rate, and
// writes both as a proposal for the places in the user's files that set them.
#pragma once

#include <optional>
#include <string>

#include "process/fix_measure.h"

namespace saturate {

struct FixBatch {
    std::optional<FixProposal> proposal;  // absent: no better size found
    FixOutcome outcome;
    double rate = 0;      // samples/s with the proposal
    std::string refused;  // why no size was searched for; empty: it was searched
    bool has_no_time = false;
};

// Searches with the kept changes in force; `best` is their samples/s.
[[nodiscard]] FixBatch find_fix_batch(FixMeasure& measure, const FixAnswer& answer,
                                      const FixQuestion& question, const FixTrialSettings& settings,
                                      const FixChanges& kept, double best);

}  // namespace saturate
