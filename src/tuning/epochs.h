// SPDX-License-Identifier: Apache-2.0
// Whole epochs of a watched script: how long one takes with all that stands between its steps
// (evaluation, checkpoint, the start of the loader's workers), and the rate over several of them.
// What a change of those is worth shows in this rate alone: the rate of the steps leaves pauses out.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "telemetry/record_reader.h"
#include "tuning/budget.h"

namespace saturate {

struct EpochTimes {
    std::int64_t steps = 0;  // of one; 0: not known
    double seconds = 0;      // of one, pauses and the start of its workers included
    int seen = 0;            // whole ones behind the first
    // Means of an epoch, behind the first where there are more; absent: none came to its end.
    std::optional<double> evaluation, checkpoint, start;
    // No start of a later epoch takes longer than that of the first; absent: it was not seen.
    std::optional<double> start_most;
};
[[nodiscard]] EpochTimes epoch_times(const RunRecord& record);
// Steps of every whole epoch, the first included.
[[nodiscard]] std::vector<std::int64_t> epoch_steps(const RunRecord& record);

// How many epochs every trial lasts.
struct EpochPlan {
    int count = 0;                 // measured; 0: trials are of steps alone
    int unit = 1;                  // ... in multiples of this
    std::int64_t least_steps = 0;  // that a run must make for it
    // Steps of the first epoch that are left out; the last one is measured as far into it. 0: all
    // of the first is left out.
    std::int64_t warm_up = 0;
    double lasts = 0;  // epochs that a run takes
    // To those that a script was seen to have.
    void shorten(int seen);
};
// Whole epochs are measured where some of them fit into the budget, for every trial and for the
// proof, or into the time that a trial of steps would take. `interval`: something is to be tried
// that would happen once in so many epochs; a multiple of it where that fits.
[[nodiscard]] EpochPlan plan_epochs(const EpochTimes& epoch, int interval, const TuneBudget& budget,
                                    double elapsed_seconds);
// A budget with which so many epochs would be measured in every trial and in the proof.
[[nodiscard]] double budget_for_epochs(const EpochTimes& epoch, int count, const TuneBudget& budget,
                                       double elapsed_seconds);

// Samples per second over the epochs of the plan; nothing where the run has fewer.
[[nodiscard]] std::optional<double> rate_over_epochs(const RunRecord& record,
                                                     const EpochPlan& plan);

}  // namespace saturate
