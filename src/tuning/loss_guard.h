// SPDX-License-Identifier: Apache-2.0
// A faster setting that changes the loss curve is not faster. Compares losses at equal numbers of
// samples seen, against the spread of repeated baselines. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "telemetry/record.h"

namespace saturate {

struct LossPoint {
    double samples = 0;  // samples seen at the step of this loss
    double loss = 0;
};
using LossCurve = std::vector<LossPoint>;

// The losses that a run read, by samples seen.
[[nodiscard]] LossCurve loss_curve(std::span<const StepRecord> steps);

enum class GuardVerdict { holds, differs, nonfinite, unknown };

struct LossGuard {
    GuardVerdict verdict = GuardVerdict::unknown;
    double samples = 0;                // the curves are compared up to this many samples
    double before = 0, deviation = 0;  // mean of the baselines and their spread
    double after = 0;
    std::string text;  // one line

    // What chance explains: other losses than these are not those of an unchanged run.
    [[nodiscard]] double highest() const { return before + 2 * deviation; }
    [[nodiscard]] double lowest() const { return before - 2 * deviation; }
};

// `baselines` are repeats with other seeds, at least two. Compares mean losses over the last
// quarter of the samples that all runs saw. The guard holds if the loss is lower, or higher by at
// most twice the deviation. The deviation is half of what chance explains: the distance between the
// baselines, widened because they are few, or the noise that the jumps from step to step leave in a
// mean.
[[nodiscard]] LossGuard guard_loss(std::span<const LossCurve> baselines,
                                   const LossCurve& candidate);
// Compares several runs of one candidate by their mean: among many single runs, one is far off by
// chance.
[[nodiscard]] LossGuard guard_losses(std::span<const LossCurve> baselines,
                                     std::span<const LossCurve> candidates);

[[nodiscard]] Json to_json(const LossGuard& guard);

}  // namespace saturate
