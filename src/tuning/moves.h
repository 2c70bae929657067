// SPDX-License-Identifier: Apache-2.0
// What the search may try next: the remedies of the catalogue (remedies/catalogue.h) that a trial
// of seconds can judge, with the values that the facts and the measurements call for. Which comes
// first is the diagnosis's word: the biggest cause names the next trial. Pure: nothing is measured
// here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnosis/finding.h"
#include "remedies/catalogue.h"
#include "tuning/trial.h"

namespace saturate {

struct Move {
    std::string cause;   // "input", "precision", ...
    Assignment change;   // over the settings in force
    std::string reason;  // one line
    Relief relief = Relief::unknown;
    std::string key = {};  // what it is about; the rest of the change goes along
};

// The most that a change can take off the step, as a share of its time, by what was measured; 1
// where that does not tell.
[[nodiscard]] double most_gain(Relief relief, const Facts& facts, const Rate& rate);

// The loader is the bottleneck: workers from the measured wait, then prefetch and cache. `rate` is
// the measured one, `bound` the rate without the loader.
[[nodiscard]] std::vector<Move> loader_moves(const Facts& facts, const Assignment& now,
                                             const Rate& rate, double bound);

// The device is the bottleneck, or the host in front of it: copies, readings of the loss,
// precision, layout, optimizer, threads and, on a GPU, the captured step. One at a time.
[[nodiscard]] std::vector<Move> compute_moves(const Facts& facts, const Assignment& now,
                                              double step_seconds);

// The compiled step, where there is one to try.
[[nodiscard]] std::optional<Move> compiler_move(const Facts& facts, const Assignment& now);

// Two remedies that may gain only together: on a CPU the layout that convolutions prefer changes
// with the batch (channels_last lost 26 % at batch 16 and won at 128).
[[nodiscard]] std::optional<Move> paired_move(const Facts& facts, const Assignment& now);

// What relieves the cause with the largest share of the time comes first; what relieves none that
// was found keeps its place behind.
void order_by_cause(std::vector<Move>& moves, const std::vector<Finding>& findings);

}  // namespace saturate
