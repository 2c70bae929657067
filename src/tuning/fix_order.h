// SPDX-License-Identifier: Apache-2.0
// Which proposals of a fix are tried, in which order and which together: by the causes that the
// watched run shows. What cannot gain by what was measured is not tried, and says why. Pure.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "diagnosis/finding.h"
#include "project/fix_plan.h"
#include "project/watched_calls.h"
#include "telemetry/record_reader.h"
#include "tuning/epochs.h"
#include "tuning/fix_rates.h"
#include "tuning/rate.h"

namespace saturate {

struct FixOrder {
    std::vector<std::vector<const FixProposal*>> trials;  // those of one are tried together
    std::size_t by_cause = 0;                     // the first so many relieve a cause that was seen
    std::map<std::string, std::string> left_out;  // id, why
    // What would gain is left out because trials do not last so many epochs; 0: nothing is.
    int epochs_wanted = 0;
};

struct WatchedRun {
    const RunRecord& record;
    const Rate& rate;
    const std::vector<Finding>& findings;
    bool has_gpu = false;
    EpochTimes epoch = {};
    int epochs = 0;  // that every trial lasts, pauses included; 0: trials are of steps alone
    std::set<int> unseen_calls = {}, unseen_loops = {};  // of the source, that the run did not use
};

// How many times as large the batches are with the changes.
[[nodiscard]] double batch_growth(std::span<const FixProposal* const> changes);

// In how many epochs once, where the proposal is about that; else 1.
[[nodiscard]] int interval_of(const FixProposal& proposal);

[[nodiscard]] FixOrder order_trials(const FixPlan& plan, const WatchedRun& watched);

// Why the proposal does nothing beside those that are kept; empty: it may.
[[nodiscard]] std::string moot(const FixProposal& proposal,
                               const std::vector<const FixProposal*>& kept);

// Workers may take from the model's threads what they give: what makes room for another is tried
// together with that one where it was measured and did not gain alone, and alone where it is kept.
// Empty: neither.
[[nodiscard]] std::vector<const FixProposal*> with_what_needs_it(
    const FixProposal& room, const FixPlan& plan, std::span<const FixProposal* const> kept,
    const std::set<std::string>& measured);

// Workers of the loader that feeds the training, with these changes of the watched job.
[[nodiscard]] std::int64_t workers_with(std::span<const FixProposal* const> changes,
                                        const RunRecord& watched);
// Batches that this loader may make ahead.
[[nodiscard]] std::int64_t ready_batches(std::span<const FixProposal* const> changes,
                                         const RunRecord& watched);
// What the proposal needs and the job with these changes has not; empty: nothing is missing.
[[nodiscard]] std::string missing_for(const FixProposal& proposal,
                                      std::span<const FixProposal* const> changes,
                                      const RunRecord& watched);

// ... of all proposals, by id.
[[nodiscard]] std::map<std::string, std::string> missing_beside(
    const FixPlan& plan, std::span<const FixProposal* const> kept, const RunRecord& watched);

// What the proposal asked for and the record shows to be otherwise; nothing where it is in force or
// where a record cannot tell.
[[nodiscard]] std::optional<std::string> not_in_force(const FixProposal& proposal,
                                                      const RunRecord& record);

}  // namespace saturate
