// SPDX-License-Identifier: Apache-2.0
// What evaluations and checkpoints cost over whole epochs, and how far apart they would have to be
// to cost little. A trial is too short to hold an epoch: the length of a pause and the rate of the
// steps are measured, the rest is arithmetic. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuning/trial.h"

namespace saturate {

// How long training stands still each time, in seconds; absent: it was not seen.
struct Pauses {
    std::optional<double> evaluation, checkpoint;
};
// The shortest of each kind: the first evaluation of a process also starts its workers.
[[nodiscard]] Pauses pauses_of(const RunRecord& record);
[[nodiscard]] std::string pauses_text(const Pauses& pauses);  // "evaluation 2.1 s, checkpoint 3 ms"

// One interval that would pay.
struct LongerInterval {
    std::string cause;  // "evaluation", "checkpoint"
    std::string key, value;
    std::string reason;
    double ratio = 1;   // of the rate over whole epochs
    std::string trade;  // why it is only shown; empty: nothing speaks against it
};

// `settings` are in force, `rate` the samples/s of the steps alone. Intervals whose pauses take
// less than `least` of the time are left alone.
[[nodiscard]] std::vector<LongerInterval> longer_intervals(const Assignment& settings,
                                                           const Pauses& pauses, double rate,
                                                           double samples_per_epoch, double least);

// Evaluation and checkpoint intervals: they change no step.
[[nodiscard]] bool is_interval(const std::string& key);

}  // namespace saturate
