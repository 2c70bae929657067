// SPDX-License-Identifier: Apache-2.0
// Makes measured runs of the user's job with changes, by steps or over whole epochs, within the
// budget. Compares each run with the unchanged job: a run that trains differently fails. Owned by
// one search of `fix`; one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "process/fix_runner.h"
#include "process/fix_trials.h"
#include "process/signals.h"
#include "tuning/budget.h"
#include "tuning/epochs.h"
#include "tuning/training_guard.h"

namespace saturate {

class FixMeasure {
  public:
    // All references must outlive this object.
    FixMeasure(const FixAnswer& answer, ProjectReader& reader, const FixQuestion& question,
               const FixTrialSettings& settings);

    [[nodiscard]] bool is_stopped() const { return interrupts_.stop_signal() != 0; }
    [[nodiscard]] double seconds() const { return static_cast<double>(now_ns() - start_ns_) / 1e9; }
    void say(const std::string& line) const;

    // First run of the unchanged job. It may take a large part of the budget to start.
    TrialResult first();
    // Second run of the unchanged job, before anything is compared with it.
    TrialResult again();
    // Runs the job with the changes applied to copies of the user's files.
    TrialResult trial(const FixChanges& changes);
    TrialResult for_proof(const FixChanges& changes);

    // Plans epochs from the first run. `interval`: a change that is to be tried acts once in that
    // many epochs.
    void choose_epochs(const RunRecord& baseline, int interval);
    [[nodiscard]] const EpochTimes& epoch() const { return epoch_; }
    [[nodiscard]] int epochs() const { return epochs_.count; }  // 0: rates count steps only
    // Nothing if trials measure steps only or if the run has too few epochs.
    [[nodiscard]] std::optional<double> epoch_rate(const RunRecord& record) const {
        return rate_over_epochs(record, epochs_);
    }
    [[nodiscard]] std::string unit() const;
    // "20m": a budget for trials of this many epochs; empty: longer than anyone would wait.
    [[nodiscard]] std::string longer_for(int epochs) const;
    // Other batch sizes have other epochs: rates count steps only as long as this object lives.
    class StepsAlone;

    [[nodiscard]] bool has_time() const;
    [[nodiscard]] int runs_left() const;

    // True if the last run trained differently.
    [[nodiscard]] bool has_changed_training() const { return has_changed_; }
    [[nodiscard]] const GuardAnswer& guard_answer() const { return last_guard_; }
    // Why the runs of the proof so far train differently; empty: they do not.
    [[nodiscard]] const std::string& otherwise() const { return otherwise_; }

    [[nodiscard]] const FixRunner& runner() const { return runner_; }
    [[nodiscard]] const TuneBudget& budget() const { return budget_; }
    // Losses of the longest unchanged run, and of the last proof run with all changes.
    [[nodiscard]] const LossCurve& losses_before() const { return losses_before_; }
    [[nodiscard]] const LossCurve& losses_after() const { return losses_after_; }

  private:
    TrialResult run(const FixChanges& changes, const FixRunLimits& limits);
    TrialResult judged(const FixChanges& changes, TrialResult result, bool is_proof);
    void add_before(const RunRecord& record);
    void choose_epochs_again(const EpochTimes& seen);
    void take(const EpochPlan& plan);
    [[nodiscard]] FixRunLimits limits(const FixChanges& changes, double measured,
                                      double most) const;
    [[nodiscard]] FixRunLimits of_search(const FixChanges& changes) const;

    const FixAnswer& answer_;
    const FixQuestion& question_;
    const FixTrialSettings& settings_;
    Signals interrupts_{Signals::Role::stop};
    FixRunner runner_;
    TuneBudget budget_;
    TrainingGuard guard_;
    GuardAnswer last_guard_;
    bool has_changed_ = false;
    std::string otherwise_;
    LossCurve losses_before_, losses_after_;
    std::vector<LossCurve> proof_losses_;  // of the proof's runs with the changes
    EpochTimes epoch_;
    EpochPlan epochs_;
    RunRecord baseline_;
    double baseline_seconds_ = 0;
    std::int64_t start_ns_ = now_ns();
    std::string doing_;
};

class FixMeasure::StepsAlone {
  public:
    explicit StepsAlone(FixMeasure& measure);
    ~StepsAlone();
    StepsAlone(const StepsAlone&) = delete;
    StepsAlone& operator=(const StepsAlone&) = delete;

  private:
    FixMeasure& measure_;
    EpochPlan epochs_;
};

}  // namespace saturate
