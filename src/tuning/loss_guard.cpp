// SPDX-License-Identifier: Apache-2.0
#include "tuning/loss_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace saturate {

namespace {

// Equal baselines have no spread. A difference below this share of the loss is rounding.
constexpr double kLeastDeviation = 0.01;

struct Mean {
    double value = 0;
    int n = 0;
};

Mean mean_between(const LossCurve& curve, double from, double to) {
    Mean out;
    for (const LossPoint& point : curve) {
        if (point.samples < from || point.samples > to) continue;
        out.value += point.loss;
        ++out.n;
    }
    if (out.n > 0) out.value /= out.n;
    return out;
}

// The noise of single losses around their course, from the differences between neighbouring steps.
// It is needed because two noisy runs may agree by chance.
double step_noise(std::span<const LossCurve> curves, double to) {
    double squares = 0;
    int n = 0;
    for (const LossCurve& curve : curves) {
        for (std::size_t i = 1; i < curve.size() && curve[i].samples <= to; ++i, ++n)
            squares += std::pow(curve[i].loss - curve[i - 1].loss, 2);
    }
    return n > 0 ? std::sqrt(squares / n / 2) : 0;
}

// Quantiles of Student's t for a one-sided test at 97.5 %, by degrees of freedom from 1.
constexpr std::array<double, 20> kOneSided = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                              2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                              2.131, 2.120, 2.110, 2.101, 2.093, 2.086};

// By how much more the means of `more` and of `runs` runs vary than single runs.
double of_means(std::size_t more, std::size_t runs) {
    return std::sqrt(1 / static_cast<double>(more) + 1 / static_cast<double>(runs));
}

// By how much the mean of `more` further runs without a seed may lie above the mean of these runs
// by chance. It uses the distance between the runs in each of the last three quarters, because two
// runs may agree in one quarter by chance. A run that leads in one quarter mostly leads in the
// next, so the degrees of freedom count runs, not quarters. With only two runs, the quarters add
// one more.
double chance_between(std::span<const LossCurve> curves, double samples, std::size_t more) {
    double squares = 0;
    std::size_t degrees = 0;
    for (double from : {0.25, 0.5, 0.75}) {
        std::vector<double> means;
        for (const LossCurve& curve : curves) {
            Mean mean = mean_between(curve, from * samples, (from + 0.25) * samples);
            if (mean.n > 0 && std::isfinite(mean.value)) means.push_back(mean.value);
        }
        if (means.size() < 2) continue;
        double n = static_cast<double>(means.size());
        double middle = std::accumulate(means.begin(), means.end(), 0.0) / n;
        for (double mean : means) squares += (mean - middle) * (mean - middle);
        degrees += means.size() - 1;
    }
    if (degrees == 0) return 0;
    std::size_t freedom = std::min(degrees, std::max<std::size_t>(2, curves.size() - 1));
    return kOneSided[std::min(freedom, kOneSided.size()) - 1] * of_means(more, curves.size()) *
           std::sqrt(squares / static_cast<double>(degrees));
}

}  // namespace

LossCurve loss_curve(std::span<const StepRecord> steps) {
    std::vector<double> seen;
    double samples = 0;
    LossCurve curve;
    for (const StepRecord& step : steps) {
        samples += static_cast<double>(step.samples.value_or(0));
        seen.push_back(samples);
        if (!step.loss) continue;
        // A loss is read late. The index of its own step gives the samples seen.
        std::int64_t of = step.loss_step.value_or(step.step) - steps.front().step;
        if (of < 0 || of >= static_cast<std::int64_t>(seen.size())) continue;
        curve.push_back({seen[static_cast<std::size_t>(of)], *step.loss});
    }
    return curve;
}

LossGuard guard_loss(std::span<const LossCurve> baselines, const LossCurve& candidate) {
    return guard_losses(baselines, {&candidate, 1});
}

LossGuard guard_losses(std::span<const LossCurve> baselines,
                       std::span<const LossCurve> candidates) {
    LossGuard out;
    auto unknown = [&](std::string why) {
        out.text = "the loss could not be compared: " + std::move(why);
        return out;
    };
    for (const LossCurve& candidate : candidates) {
        for (const LossPoint& point : candidate) {
            if (std::isfinite(point.loss)) continue;
            out.verdict = GuardVerdict::nonfinite;
            out.text =
                fmt::format("the loss is NaN or infinite after {:.0f} samples", point.samples);
            return out;
        }
    }
    if (baselines.size() < 2) return unknown("two unchanged runs are needed");
    out.samples = std::numeric_limits<double>::infinity();
    for (const LossCurve& curve : candidates) {
        if (curve.empty()) return unknown("the changed run read no loss");
        out.samples = std::min(out.samples, curve.back().samples);
    }
    for (const LossCurve& curve : baselines) {
        if (curve.empty()) return unknown("an unchanged run read no loss");
        out.samples = std::min(out.samples, curve.back().samples);
    }
    double from = 0.75 * out.samples;
    std::vector<double> means;
    int losses = 0;  // losses in each mean, the fewest
    for (const LossCurve& curve : baselines) {
        Mean mean = mean_between(curve, from, out.samples);
        if (mean.n == 0 || !std::isfinite(mean.value))
            return unknown("an unchanged run has no loss there");
        means.push_back(mean.value);
        losses = losses == 0 ? mean.n : std::min(losses, mean.n);
    }
    for (const LossCurve& candidate : candidates) {
        Mean after = mean_between(candidate, from, out.samples);
        if (after.n == 0) return unknown("the changed run read no loss at the same samples");
        out.after += after.value / static_cast<double>(candidates.size());
    }
    for (double mean : means) out.before += mean / static_cast<double>(means.size());
    out.deviation = std::max({chance_between(baselines, out.samples, candidates.size()) / 2,
                              step_noise(baselines, out.samples) / std::sqrt(losses) *
                                  of_means(candidates.size(), baselines.size()),
                              kLeastDeviation * std::abs(out.before)});
    out.verdict = out.after <= out.highest() ? GuardVerdict::holds : GuardVerdict::differs;
    out.text =
        fmt::format("loss {:.4g} after {:.0f} samples; {:.4g} before (n={}, up to {:.4g} by chance): {}",
                    out.after, out.samples, out.before, means.size(), out.highest(),
                    out.verdict == GuardVerdict::holds ? "no worse" : "worse than chance explains");
    return out;
}

Json to_json(const LossGuard& guard) {
    constexpr std::string_view kNames[] = {"holds", "differs", "nonfinite", "unknown"};
    return Json::object({{"verdict", std::string(kNames[static_cast<int>(guard.verdict)])},
                         {"samples", guard.samples},
                         {"before", guard.before},
                         {"deviation", guard.deviation},
                         {"after", guard.after},
                         {"text", guard.text}});
}

}  // namespace saturate
