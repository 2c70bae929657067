// SPDX-License-Identifier: Apache-2.0
// Decides which proposals of `fix` are tried, in which order and which of them together, from the
// causes that the watched run shows. A proposal that cannot gain by these measurements is not
// tried, with a reason. Pure.
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
    std::vector<std::vector<const FixProposal*>> trials;  // each inner list is tried together
    // The first `by_cause` trials relieve a cause that was seen.
    std::size_t by_cause = 0;
    std::map<std::string, std::string> left_out;  // why, by the id of the proposal
    // Those left out because trials are too short, by id, and the epochs that a trial would need.
    std::set<std::string> for_epochs;
    int epochs_wanted = 0;  // 0: none
};

struct WatchedRun {
    const RunRecord& record;
    const Rate& rate;
    const std::vector<Finding>& findings;
    bool has_gpu = false;
    EpochTimes epoch = {};
    int epochs = 0;  // epochs in every trial, with pauses; 0: trials measure steps only
    // Calls and loops of the source that the run did not use.
    std::set<int> unseen_calls = {}, unseen_loops = {};
};

// How many times larger the changes make the batch.
[[nodiscard]] double batch_growth(std::span<const FixProposal* const> changes);

// True if one of the changes compiles the model before the first step.
[[nodiscard]] bool has_compile(std::span<const FixProposal* const> changes);

// The interval in epochs that the proposal sets, or 1 if it sets no interval.
[[nodiscard]] int interval_of(const FixProposal& proposal);

[[nodiscard]] FixOrder order_trials(const FixPlan& plan, const WatchedRun& watched);

// Why the proposal does nothing together with the kept ones; empty: it may help.
[[nodiscard]] std::string moot(const FixProposal& proposal,
                               const std::vector<const FixProposal*>& kept);

// Workers may take the cores that the model's threads need, and starting them in every epoch may
// take longer than they save. A change that makes room for workers is tried together with the
// workers' change if that was measured and did not gain alone, and on its own if that is kept.
// Empty: neither.
[[nodiscard]] std::vector<const FixProposal*> with_what_needs_it(
    const FixProposal& room, const FixPlan& plan, std::span<const FixProposal* const> kept,
    const std::set<std::string>& measured);

// Number of workers of the training loader, with these changes applied to the watched job.
[[nodiscard]] std::int64_t workers_with(std::span<const FixProposal* const> changes,
                                        const RunRecord& watched);
// Number of batches that this loader may prepare ahead.
[[nodiscard]] std::int64_t ready_batches(std::span<const FixProposal* const> changes,
                                         const RunRecord& watched);
// What the proposal needs and the job with these changes does not have; empty: nothing is missing.
[[nodiscard]] std::string missing_for(const FixProposal& proposal,
                                      std::span<const FixProposal* const> changes,
                                      const RunRecord& watched);

// The same for all proposals, by id. Only the missing ones are in the map.
[[nodiscard]] std::map<std::string, std::string> missing_beside(
    const FixPlan& plan, std::span<const FixProposal* const> kept, const RunRecord& watched);

// Says how the record contradicts the proposal. Returns nothing if the change is in force or if a
// record cannot tell.
[[nodiscard]] std::optional<std::string> not_in_force(const FixProposal& proposal,
                                                      const RunRecord& record);

}  // namespace saturate
