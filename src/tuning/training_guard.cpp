// SPDX-License-Identifier: Apache-2.0
#include "tuning/training_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tuning/epochs.h"

namespace saturate {

namespace {

constexpr double kFewerSteps = 0.02;  // tolerance in steps per batch, e.g. at the end of an epoch
// Batches at the end of a run without a step: the current one and, with Lightning, one fetched
// ahead. In a run of a few steps this matters.
constexpr double kInFlight = 2;
constexpr std::size_t kLeastLosses = 4;  // fewer losses may be equal by chance
constexpr double kRounding = 1e-4;       // relative, for sums in another order

// How many losses from the start on are equal. If all are, the length of the shorter curve.
std::size_t equal_losses(const LossCurve& one, const LossCurve& other) {
    std::size_t n = std::min(one.size(), other.size());
    for (std::size_t i = 0; i < n; ++i) {
        double a = one[i].loss, b = other[i].loss;
        bool same = one[i].samples == other[i].samples &&
                    std::abs(a - b) <= kRounding * std::max(std::abs(a), 1e-3);
        if (!same) return i;
    }
    return n;
}

// Losses that the script did not read itself. The record keeps them apart from the steps (`run
// --losses`).
LossCurve losses_beside(const RunRecord& record) {
    std::vector<double> seen;
    double samples = 0;
    for (const StepRecord& step : record.steps) {
        samples += static_cast<double>(step.samples.value_or(0));
        seen.push_back(samples);
    }
    LossCurve out;
    for (const char* part : {"first", "tail"}) {
        for (const Json& entry : record.python["losses"][part].items()) {
            if (entry.items().size() != 2) continue;
            auto step = static_cast<std::size_t>(entry.items()[0].integer().value_or(-1));
            if (step >= seen.size()) continue;
            out.push_back({seen[step], entry.items()[1].number().value_or(std::nan(""))});
        }
    }
    return out;
}

}  // namespace

LossCurve losses_of(const RunRecord& record) {
    LossCurve out = loss_curve(record.steps);
    return out.empty() ? losses_beside(record) : out;
}

TrainingGuard::Run TrainingGuard::run_of(const RunRecord& record) {
    Run out{.steps_per_batch = {},
            .batches = 0,
            .losses = losses_of(record),
            .not_finite = 0,
            .epochs = epoch_steps(record)};
    const Json& totals = record.python["totals"];
    auto steps = totals["optimizer_steps"].integer();
    auto batches = totals["batches"].integer();
    std::int64_t all = batches.value_or(0) + totals["skipped_batches"].integer().value_or(0);
    out.batches = static_cast<double>(all);
    if (steps && all > 0) out.steps_per_batch = static_cast<double>(*steps) / out.batches;
    for (const LossPoint& point : out.losses) out.not_finite += !std::isfinite(point.loss);
    out.not_finite = std::max(out.not_finite, totals["not_finite"].integer().value_or(0));
    return out;
}

void TrainingGuard::add_before(const RunRecord& record) { before_.push_back(run_of(record)); }

std::string TrainingGuard::broken(const Run& run) const {
    for (const Run& before : before_) {
        if (!before.steps_per_batch || !run.steps_per_batch) continue;
        double in_flight = kInFlight / run.batches + kInFlight / before.batches;
        if (std::abs(*run.steps_per_batch - *before.steps_per_batch) >
            (kFewerSteps + in_flight) * std::max(*before.steps_per_batch, 1.0))
            return fmt::format("{:.3g} optimizer steps per batch, {:.3g} before",
                               *run.steps_per_batch, *before.steps_per_batch);
    }
    bool was_finite = std::ranges::any_of(before_, [](const Run& r) { return r.not_finite == 0; });
    if (run.not_finite > 0 && was_finite)
        return fmt::format("{} losses that are NaN or infinite, none before", run.not_finite);
    return "";
}

// An epoch gets shorter if batches fail in a worker and the script goes on without them.
std::string TrainingGuard::shorter(const Run& run) const {
    std::int64_t least = 0;
    for (const Run& before : before_)
        for (std::int64_t steps : before.epochs)
            least = least == 0 ? steps : std::min(least, steps);
    for (std::int64_t steps : run.epochs)
        if (steps < least)
            return fmt::format("an epoch of {} steps, {} or more before", steps, least);
    return "";
}

// How many losses from the start on are equal in all unchanged runs. If they diverge at some step
// (sums in another order on a GPU grow), only the first half counts: another run may diverge
// earlier.
std::size_t TrainingGuard::repeated() const {
    if (before_.size() < 2) return 0;
    std::size_t least = before_[0].losses.size();
    for (std::size_t i = 1; i < before_.size(); ++i) {
        std::size_t both = std::min(before_[0].losses.size(), before_[i].losses.size());
        std::size_t same = equal_losses(before_[0].losses, before_[i].losses);
        least = std::min(least, same == both ? both : same / 2);
    }
    return least >= kLeastLosses ? least : 0;
}

GuardAnswer TrainingGuard::compare_losses(const Run& run, const GuardLevels& levels,
                                          std::vector<LossCurve> earlier) const {
    bool has_losses = !run.losses.empty() && std::ranges::all_of(before_, [](const Run& before) {
        return !before.losses.empty();
    });
    if (!has_losses)
        return {true, "the losses could not be compared: they were not seen in both runs"};
    std::size_t n = std::min(run.losses.size(), repeated());
    std::size_t same = std::min(n, equal_losses(run.losses, before_[0].losses));
    if (n >= kLeastLosses && same == n)
        return {true, fmt::format("the losses of the first {} steps are the same", n)};
    // The random numbers or the rounding differ: the course of the loss decides.
    std::vector<LossCurve> before;
    for (const Run& one : before_) before.push_back(one.losses);
    earlier.push_back(run.losses);
    LossGuard guard = guard_losses(before, earlier);
    bool holds = guard.verdict == GuardVerdict::holds || guard.verdict == GuardVerdict::unknown;
    bool is_by_course = guard.verdict == GuardVerdict::differs;
    if (levels.of_change != Level::safe || !holds)
        return {.holds = holds, .text = guard.text, .is_by_course = is_by_course};
    // A change of level safe must not train better either.
    if (guard.verdict == GuardVerdict::holds && guard.after < guard.lowest()) {
        return {.holds = false,
                .text = fmt::format("loss {:.4g} after {:.0f} samples; {:.4g} before (down to "
                                    "{:.4g} by chance): it must not change, and it is lower",
                                    guard.after, guard.samples, guard.before, guard.lowest()),
                .is_by_course = true};
    }
    if (n < kLeastLosses) return {true, guard.text};
    std::string from = same == 0 ? std::string("from the first step on")
                                 : fmt::format("after {} steps that are the same", same);
    if (levels.swallows_errors)
        return {.holds = false,
                .text = fmt::format("the losses differ {}, and the script goes on after any error: "
                                    "batches may be lost",
                                    from)};
    GuardAnswer out{.holds = levels.allowed >= Level::numerics, .text = {}, .other_draws = true};
    out.text = fmt::format("the losses differ {}, as if random numbers came in another order ({})",
                           from, out.holds ? guard.text : "allowed with --level numerics");
    return out;
}

GuardAnswer TrainingGuard::judge(const RunRecord& record, const GuardLevels& levels,
                                 std::vector<LossCurve> earlier) const {
    Run run = run_of(record);
    if (std::string why = broken(run); !why.empty()) return {false, why};
    if (levels.of_change < Level::training)
        if (std::string why = shorter(run); !why.empty()) return {false, why};
    return compare_losses(run, levels, std::move(earlier));
}

}  // namespace saturate
