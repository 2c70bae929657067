// SPDX-License-Identifier: Apache-2.0
#include "process/fix_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tuning/fix_order.h"

namespace saturate {

namespace {

constexpr int kMostTrials = 12;
constexpr double kBaselineShare = 0.5;  // share of the budget for the unchanged job
constexpr double kBriefSeconds = 0.4;   // seconds of steps, if epochs are measured
constexpr double kCompileSeconds = 90;  // compile() takes up to so long before the first step

Level level_of(const FixChanges& changes) {
    Level out = Level::safe;
    for (const FixProposal* change : changes) out = std::max(out, change->level);
    return out;
}

}  // namespace

FixMeasure::FixMeasure(const FixAnswer& answer, ProjectReader& reader, const FixQuestion& question,
                       const FixTrialSettings& settings)
    : answer_(answer),
      question_(question),
      settings_(settings),
      runner_({.job = settings.job,
               .output = settings.output,
               .with_losses = settings.has_gpu,
               .is_stopped =
                   [this] {
                       if (settings_.on_working) settings_.on_working(doing_, seconds());
                       return is_stopped();
                   }},
              answer.facts, reader, question),
      budget_(settings.budget_seconds, false) {}

void FixMeasure::say(const std::string& line) const {
    if (settings_.on_line) settings_.on_line(line);
}

TrialResult FixMeasure::first() {
    double most = kBaselineShare * settings_.budget_seconds;
    doing_ = "your job, unchanged";
    TrialResult result = run({}, {.measured = budget_.trial_seconds(), .most = most});
    if (!result.ok()) return result;
    add_before(result.record);
    baseline_ = result.record;
    baseline_seconds_ = result.seconds;
    return result;
}

// Measures the noise of the unchanged job and whether its losses repeat. Every comparison needs
// both.
TrialResult FixMeasure::again() {
    TrialResult result;
    result.outcome = TrialOutcome::not_run;
    if (has_time()) result = runner_.run({}, of_search({}));
    budget_.see(result);
    choose_epochs_again(result.ok() ? epoch_times(result.record) : EpochTimes{});
    if (!result.ok()) return result;
    add_before(result.record);
    if (auto rate = epoch_rate(result.record))
        result.samples_per_second->per_second = *rate;
    else
        take({});
    return result;
}

TrialResult FixMeasure::trial(const FixChanges& changes) {
    doing_ = fmt::format("trying {}", label_of(changes));
    return judged(changes, run(changes, of_search(changes)), false);
}

TrialResult FixMeasure::for_proof(const FixChanges& changes) {
    doing_ = changes.empty() ? "proving it: your job, unchanged" : "proving it: with the changes";
    TrialResult result = judged(
        changes, run(changes, limits(changes, budget_.proof_seconds(), settings_.budget_seconds)),
        true);
    if (!result.ok()) return result;
    if (changes.empty())
        add_before(result.record);
    else
        proof_losses_.push_back(losses_after_ = losses_of(result.record));
    return result;
}

TrialResult FixMeasure::run(const FixChanges& changes, const FixRunLimits& limits) {
    TrialResult result = runner_.run(changes, limits);
    budget_.see(result);
    if (epochs_.count == 0 || !result.ok()) return result;
    if (auto rate = epoch_rate(result.record)) {
        result.samples_per_second->per_second = *rate;
    } else {
        result.outcome = TrialOutcome::too_slow;
        result.message =
            fmt::format("it finished fewer than {} epochs in the time it had", 1 + epochs_.count);
    }
    return result;
}

// Fails a run whose changes are not in force or that trains differently. In the proof, the losses
// of all runs are judged together: a single one may differ by chance.
TrialResult FixMeasure::judged(const FixChanges& changes, TrialResult result, bool is_proof) {
    has_changed_ = result.outcome == TrialOutcome::nonfinite;
    last_guard_ = {};
    if (changes.empty() || !result.ok()) return result;
    for (const FixProposal* change : changes) {
        if (auto why = not_in_force(*change, result.record)) {
            result.outcome = TrialOutcome::not_in_force;
            result.message = *why;
            return result;
        }
    }
    bool swallows = std::ranges::any_of(
        answer_.facts.loops, [](const FactLoop& loop) { return loop.swallows.has_value(); });
    last_guard_ = guard_.judge(
        result.record,
        {.of_change = level_of(changes), .allowed = question_.level, .swallows_errors = swallows},
        is_proof ? proof_losses_ : std::vector<LossCurve>{});
    otherwise_ = last_guard_.holds ? "" : last_guard_.text;
    if (last_guard_.holds || (is_proof && last_guard_.is_by_course)) return result;
    has_changed_ = true;
    result.outcome = TrialOutcome::failed;
    result.message = last_guard_.text;
    return result;
}

void FixMeasure::add_before(const RunRecord& record) {
    guard_.add_before(record);
    LossCurve losses = losses_of(record);
    if (losses.size() > losses_before_.size()) losses_before_ = std::move(losses);
}

void FixMeasure::choose_epochs(const RunRecord& baseline, int interval) {
    epoch_ = epoch_times(baseline);
    take(plan_epochs(epoch_, interval, budget_, seconds()));
}

void FixMeasure::take(const EpochPlan& plan) {
    epochs_ = plan;
    budget_.measure_at_least(plan.lasts * epoch_.seconds);
}

// The longer run knows better how long an epoch is and how many the script has.
void FixMeasure::choose_epochs_again(const EpochTimes& seen) {
    if (epochs_.count == 0) return;
    budget_.measure_at_least(0);
    EpochPlan plan = epochs_, now = plan_epochs(seen, epochs_.unit, budget_, seconds());
    if (now.count < plan.count) plan = now;
    if (plan.warm_up == 0) plan.shorten(seen.seen);
    if (seen.evaluation) epoch_ = seen;
    take(plan);
}

std::string FixMeasure::unit() const {
    if (epochs_.count == 0) return "samples/s";
    if (epochs_.count == 1) return "samples/s over an epoch, pauses included";
    return fmt::format("samples/s over {} epochs, pauses included", epochs_.count);
}

std::string FixMeasure::longer_for(int epochs) const {
    constexpr double kPatience = 7200;
    double needed = budget_for_epochs(epoch_, epochs, budget_, seconds());
    return needed > kPatience ? "" : fmt::format("{:.0f}m", std::ceil(needed / 60));
}

bool FixMeasure::has_time() const {
    return !is_stopped() && runs_left() > 0 && budget_.left_for_search(seconds()) > 0;
}

int FixMeasure::runs_left() const { return kMostTrials - runner_.runs(); }

FixRunLimits FixMeasure::limits(const FixChanges& changes, double measured, double most) const {
    bool by_epochs = epochs_.count > 0;
    return {.measured = by_epochs ? kBriefSeconds : measured,
            .most = std::min(most, budget_.most_for_run(seconds())),
            .least_steps =
                by_epochs ? static_cast<std::int64_t>(std::ceil(
                                static_cast<double>(epochs_.least_steps) / batch_growth(changes)))
                          : 0,
            .ready_batches = ready_batches(changes, baseline_)};
}

FixRunLimits FixMeasure::of_search(const FixChanges& changes) const {
    // A run that takes far longer than the unchanged job would use up the proof's time.
    double most = std::max({20.0, 3 * baseline_seconds_, 3 * budget_.proof_run_seconds()});
    return limits(changes, budget_.trial_seconds(),
                  most + (has_compile(changes) ? kCompileSeconds : 0));
}

FixMeasure::StepsAlone::StepsAlone(FixMeasure& measure)
    : measure_(measure), epochs_(std::exchange(measure.epochs_, {})) {
    measure_.budget_.measure_at_least(0);
}

FixMeasure::StepsAlone::~StepsAlone() { measure_.take(epochs_); }

}  // namespace saturate
