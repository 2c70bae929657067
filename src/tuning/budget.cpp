// SPDX-License-Identifier: Apache-2.0
#include "tuning/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace saturate {

namespace {

constexpr double kGuardRuns = 3;      // two unchanged runs and one changed run
constexpr double kProofSteps = 6;     // a run of the proof makes at least this many steps
constexpr double kReserveMost = 0.7;  // largest share of the budget for guard and proof
// Runs of one kind differ in length: the machine may become busy or idle in between.
constexpr double kSlack = 1.25;
constexpr double kForgets = 0.7;     // a shorter start lowers the estimate only this fast
constexpr double kEndSeconds = 0.5;  // writing the last lines of a record, ending the process
constexpr double kLate = 0.25;  // share of the budget by which the first five pairs may end late

// Seconds from the first measured step to the end of the last. Includes the evaluations and
// checkpoints between them: they are not part of the start.
double seconds_between_steps(const RunRecord& record, std::int64_t dropped) {
    if (dropped < 0 || dropped >= std::ssize(record.steps)) return 0;
    const StepRecord& first = record.steps[static_cast<std::size_t>(dropped)];
    const StepRecord& last = record.steps.back();
    return static_cast<double>(last.start_ns + last.duration_ns - first.start_ns) / 1e9;
}

}  // namespace

void TuneBudget::see(const TrialResult& result) {
    if (!result.samples_per_second) return;
    const Rate& rate = *result.samples_per_second;
    if (step_seconds_ == 0) step_seconds_ = rate.step_seconds;  // the job's own settings
    if (result.from_cache) return;
    double stepping = static_cast<double>(rate.steps + rate.dropped) * rate.step_seconds;
    stepping = std::max(stepping, seconds_between_steps(result.record, rate.dropped));
    double start = std::clamp(result.seconds - stepping, 0.3, 60.0);
    bool is_first = trials_++ == 0;
    start_seconds_ = is_first ? start : std::max(start, kForgets * start_seconds_);
}

double TuneBudget::trial_seconds() const {
    // If starts take most of the time, the search makes fewer trials, not longer ones.
    return std::max(std::clamp(seconds_ / 60, 0.4, 10.0), least_seconds_);
}

double TuneBudget::proof_seconds() const {
    return std::max(
        {std::clamp(seconds_ / 40, 0.5, 4.0), kProofSteps * step_seconds_, least_seconds_});
}

double TuneBudget::guard_seconds() const {
    return std::max(std::clamp(seconds_ / 60, 0.5, 6.0), kGuardSteps * step_seconds_);
}

double TuneBudget::trial_run_seconds() const {
    return start_seconds_ + trial_seconds() + kEndSeconds;
}

double TuneBudget::proof_run_seconds() const {
    return start_seconds_ + proof_seconds() + kEndSeconds;
}

double TuneBudget::guard_run_seconds() const {
    return start_seconds_ + guard_seconds() + kEndSeconds;
}

double TuneBudget::reserve() const {
    double all = 2 * kProofPairs * proof_run_seconds();
    if (guards_) all += kGuardRuns * guard_run_seconds();
    return std::min(kSlack * all, kReserveMost * seconds_);
}

double TuneBudget::left_for_search(double elapsed) const {
    // Before the first trial nothing is subtracted for a trial: there is always one.
    if (trials_ == 0) return seconds_ - reserve() - elapsed;
    return seconds_ - reserve() - elapsed - trial_run_seconds();
}

bool TuneBudget::has_time_for_proof_run(double elapsed) const {
    return elapsed + proof_run_seconds() <= (1 + kLate) * seconds_;
}

bool TuneBudget::has_time_for_late_proof(double elapsed) const {
    double needed = trial_run_seconds() + 2 * kProofPairs * proof_run_seconds();
    return elapsed + needed <= (1 + kLate) * seconds_;
}

bool TuneBudget::has_time_for_more(double elapsed) const {
    return elapsed + 2 * proof_run_seconds() <= seconds_;
}

double TuneBudget::most_for_run(double elapsed) const {
    return std::max((1 + kLate) * seconds_ - elapsed, 0.0);
}

std::string TuneBudget::longer() const {
    double all = 2 * kProofPairs * proof_run_seconds();
    if (guards_) all += kGuardRuns * guard_run_seconds();
    // The reserve is a third of the new budget, which is at least twice the old one: the same
    // budget would end the same way.
    double minutes = std::ceil(std::max(2 * seconds_, 3 * kSlack * all) / 60);
    return fmt::format("{:.0f}m", minutes);
}

}  // namespace saturate
