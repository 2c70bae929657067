// SPDX-License-Identifier: Apache-2.0
// The changes that the search may try next: remedies of the catalogue (remedies/catalogue.h) that a
// trial of seconds can judge, with values from the facts and the measurements. The diagnosis sets
// the order: the biggest cause comes first. Pure: measures nothing.
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
    Assignment change;   // relative to the settings in force
    std::string reason;  // one line
    Relief relief = Relief::unknown;
    std::string key = {};  // the main setting; the others in `change` go along with it
};

// The largest share of the step time that a change can save, by the measurements; 1 if unknown.
[[nodiscard]] double most_gain(Relief relief, const Facts& facts, const Rate& rate);

// For a job limited by its loader: workers from the measured wait, then prefetch and cache. `rate`
// is the measured rate, `bound` the rate without the loader.
[[nodiscard]] std::vector<Move> loader_moves(const Facts& facts, const Assignment& now,
                                             const Rate& rate, double bound);

// Puts first as many workers as a watched run says that they have to be, if no move does: it knows
// whether they wait for storage, and may be more than the cores.
void add_watched_workers(std::vector<Move>& moves, const std::vector<Finding>& findings);

// For a job limited by the device or the host in front of it: copies, reading the loss, precision,
// layout, optimizer, threads and, on a GPU, the captured step. Each move changes one thing.
[[nodiscard]] std::vector<Move> compute_moves(const Facts& facts, const Assignment& now,
                                              double step_seconds);

// The move that compiles the step, if compiling is possible.
[[nodiscard]] std::optional<Move> compiler_move(const Facts& facts, const Assignment& now);

// Two remedies that may gain only together. On a CPU the best layout for convolutions depends on
// the batch (channels_last lost 26 % at batch 16 and won at 128).
[[nodiscard]] std::optional<Move> paired_move(const Facts& facts, const Assignment& now);

// Puts the moves that relieve the biggest causes first. Moves that relieve no finding keep their
// order after them.
void order_by_cause(std::vector<Move>& moves, const std::vector<Finding>& findings);

}  // namespace saturate
