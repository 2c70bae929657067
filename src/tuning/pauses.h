// SPDX-License-Identifier: Apache-2.0
// Computes what evaluations and checkpoints cost over whole epochs, and how far apart they must be
// to cost little. A trial is too short for an epoch: it measures the length of a pause and the rate
// of the steps, the rest is arithmetic. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuning/trial.h"

namespace saturate {

// Seconds that one pause stops the training; absent: not seen.
struct Pauses {
    std::optional<double> evaluation, checkpoint;
};
// Takes the shortest pause of each kind: the first evaluation of a process also starts its workers.
[[nodiscard]] Pauses pauses_of(const RunRecord& record);
[[nodiscard]] std::string pauses_text(const Pauses& pauses);  // "evaluation 2.1 s, checkpoint 3 ms"

// A longer interval that would gain.
struct LongerInterval {
    std::string cause;  // "evaluation", "checkpoint"
    std::string key, value;
    std::string reason;
    double ratio = 1;   // of the rate over whole epochs
    std::string trade;  // why it is only shown, not applied; empty: no objection
};

// `settings` are in force, `rate` is the samples/s of the steps alone. Skips pauses that take less
// than the share `least` of the time.
[[nodiscard]] std::vector<LongerInterval> longer_intervals(const Assignment& settings,
                                                           const Pauses& pauses, double rate,
                                                           double samples_per_epoch, double least);

// True for evaluation and checkpoint intervals. They change no step.
[[nodiscard]] bool is_interval(const std::string& key);

}  // namespace saturate
