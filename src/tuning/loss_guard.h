// SPDX-License-Identifier: Apache-2.0
// A faster setting that changes the loss curve is not faster. Compares losses at equal numbers of
// samples seen with the spread of repeated baselines.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "telemetry/record.h"

namespace saturate {

struct LossPoint {
    double samples = 0;  // seen when the loss was of
    double loss = 0;
};
using LossCurve = std::vector<LossPoint>;

// The losses of a run that were read, by samples seen.
[[nodiscard]] LossCurve loss_curve(std::span<const StepRecord> steps);

enum class GuardVerdict { holds, differs, nonfinite, unknown };

struct LossGuard {
    GuardVerdict verdict = GuardVerdict::unknown;
    double samples = 0;                // at which the curves are compared
    double before = 0, deviation = 0;  // mean of the baselines and their spread
    double after = 0;
    std::string text;  // one line
};

// `baselines` are repeats with other seeds, two at least. The mean loss over the last quarter of
// the samples that all runs saw; it holds within twice the deviation, and where it is lower. The
// deviation is half of what chance explains: how far the baselines are apart, with as little
// trust as so few of them deserve, or what the leaps from step to step leave of such a mean.
[[nodiscard]] LossGuard guard_loss(std::span<const LossCurve> baselines,
                                   const LossCurve& candidate);
// Several runs of one candidate by the mean of theirs: of many single ones, one lies apart by chance.
[[nodiscard]] LossGuard guard_losses(std::span<const LossCurve> baselines,
                                     std::span<const LossCurve> candidates);

[[nodiscard]] Json to_json(const LossGuard& guard);

}  // namespace saturate
