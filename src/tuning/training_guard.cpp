// SPDX-License-Identifier: Apache-2.0
#include "tuning/training_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace saturate {

namespace {

constexpr double kFewerSteps = 0.02;      // share of optimizer steps per batch; an epoch's end, say
constexpr std::size_t kFirstLosses = 16;  // rounding that differs grows beyond them
constexpr double kRounding = 1e-4;        // of a loss: sums in another order

// How many of the first losses are the same; all of them is the number that both have.
std::size_t equal_losses(const LossCurve& one, const LossCurve& other) {
    std::size_t n = std::min({one.size(), other.size(), kFirstLosses});
    for (std::size_t i = 0; i < n; ++i) {
        double a = one[i].loss, b = other[i].loss;
        bool same = one[i].samples == other[i].samples &&
                    std::abs(a - b) <= kRounding * std::max(std::abs(a), 1e-3);
        if (!same) return i;
    }
    return n;
}

}  // namespace

TrainingGuard::Run TrainingGuard::run_of(const RunRecord& record) {
    Run out{.steps_per_batch = {}, .losses = loss_curve(record.steps), .not_finite = 0};
    const Json& totals = record.python["totals"];
    auto steps = totals["optimizer_steps"].integer();
    auto batches = totals["batches"].integer();
    std::int64_t all = batches.value_or(0) + totals["skipped_batches"].integer().value_or(0);
    if (steps && all > 0)
        out.steps_per_batch = static_cast<double>(*steps) / static_cast<double>(all);
    for (const LossPoint& point : out.losses) out.not_finite += !std::isfinite(point.loss);
    out.not_finite = std::max(out.not_finite, totals["not_finite"].integer().value_or(0));
    return out;
}

void TrainingGuard::add_before(const RunRecord& record) { before_.push_back(run_of(record)); }

std::string TrainingGuard::broken(const Run& run) const {
    for (const Run& before : before_) {
        if (!before.steps_per_batch || !run.steps_per_batch) continue;
        if (std::abs(*run.steps_per_batch - *before.steps_per_batch) >
            kFewerSteps * std::max(*before.steps_per_batch, 1.0))
            return fmt::format("{:.3g} optimizer steps per batch, {:.3g} before",
                               *run.steps_per_batch, *before.steps_per_batch);
    }
    bool was_finite = std::ranges::any_of(before_, [](const Run& r) { return r.not_finite == 0; });
    if (run.not_finite > 0 && was_finite)
        return fmt::format("{} losses that are no number, none before", run.not_finite);
    return "";
}

bool TrainingGuard::repeats_itself() const {
    if (before_.size() < 2) return false;
    const LossCurve& one = before_[0].losses;
    const LossCurve& other = before_[1].losses;
    std::size_t n = std::min({one.size(), other.size(), kFirstLosses});
    return n >= 4 && equal_losses(one, other) == n;
}

GuardAnswer TrainingGuard::compare_losses(const Run& run, Level level) const {
    bool has_losses = !run.losses.empty() && std::ranges::all_of(before_, [](const Run& before) {
        return !before.losses.empty();
    });
    if (!has_losses)
        return {true, "the losses could not be compared: they were not seen in both runs"};
    if (repeats_itself()) {
        std::size_t n = std::min({run.losses.size(), before_[0].losses.size(), kFirstLosses});
        if (n >= 4 && equal_losses(run.losses, before_[0].losses) == n)
            return {true, fmt::format("the losses of the first {} steps are the same", n)};
    }
    // Other random numbers, or other rounding: the course of the loss tells.
    std::vector<LossCurve> before;
    for (const Run& one : before_) before.push_back(one.losses);
    LossGuard guard = guard_loss(before, run.losses);
    bool holds = guard.verdict == GuardVerdict::holds || guard.verdict == GuardVerdict::unknown;
    // What is to change nothing may not train better either.
    if (level == Level::safe && guard.verdict == GuardVerdict::holds &&
        guard.after < guard.before - 2 * guard.deviation) {
        return {false, fmt::format("loss {:.4g} after {:.0f} samples, {:.4g} +- {:.2g} before: "
                                   "more than chance explains, and nothing was to change",
                                   guard.after, guard.samples, guard.before, guard.deviation)};
    }
    return {holds, guard.text};
}

GuardAnswer TrainingGuard::judge(const RunRecord& record, Level level) const {
    Run run = run_of(record);
    if (std::string why = broken(run); !why.empty()) return {false, why};
    return compare_losses(run, level);
}

}  // namespace saturate
