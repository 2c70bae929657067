// SPDX-License-Identifier: Apache-2.0
// Measures whole epochs of a watched script: the length of an epoch with everything between its
// steps (evaluation, checkpoint, start of the loader's workers), and the rate over several epochs.
// Only this rate shows what shorter pauses gain, because the rate of the steps leaves pauses out.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "telemetry/record_reader.h"
#include "tuning/budget.h"

namespace saturate {

struct EpochTimes {
    std::int64_t steps = 0;  // of one epoch; 0: unknown
    double seconds = 0;      // of one epoch, with pauses and the start of its workers
    int seen = 0;            // whole epochs after the first
    // Means per epoch, without the first epoch if there are others; absent: no epoch ended.
    std::optional<double> evaluation, checkpoint, start;
    // An upper bound for the start of a later epoch: the first epoch's start. Absent: not seen.
    std::optional<double> start_most;
};
[[nodiscard]] EpochTimes epoch_times(const RunRecord& record);
// Steps of each whole epoch, including the first.
[[nodiscard]] std::vector<std::int64_t> epoch_steps(const RunRecord& record);

// How many epochs every trial runs.
struct EpochPlan {
    int count = 0;                 // measured epochs; 0: trials measure steps only
    int unit = 1;                  // `count` is a multiple of this
    std::int64_t least_steps = 0;  // steps that a run must make to cover the plan
    // Steps of the first epoch that are left out; measuring ends at the same step of the last
    // epoch. 0: the whole first epoch is left out.
    std::int64_t warm_up = 0;
    double lasts = 0;  // epochs that a run takes
    // Reduces the plan to the number of epochs that the script was seen to have.
    void shorten(int seen);
};
// Plans whole epochs if some fit into the budget, for every trial and for the proof, or into the
// time of a trial of steps. `interval`: a change that is to be tried acts once per `interval`
// epochs; the count is a multiple of it if that fits.
[[nodiscard]] EpochPlan plan_epochs(const EpochTimes& epoch, int interval, const TuneBudget& budget,
                                    double elapsed_seconds);
// Returns a budget that is enough to measure `count` epochs in every trial and in the proof.
[[nodiscard]] double budget_for_epochs(const EpochTimes& epoch, int count, const TuneBudget& budget,
                                       double elapsed_seconds);

// Samples per second over the epochs of the plan, or nothing if the run has fewer epochs.
[[nodiscard]] std::optional<double> rate_over_epochs(const RunRecord& record,
                                                     const EpochPlan& plan);

}  // namespace saturate
