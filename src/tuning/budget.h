// SPDX-License-Identifier: Apache-2.0
// Divides the time of a search. Sets aside the time for the loss comparison and for five pairs of
// the proof, computed from how long a start and a step of the job take. The search gets the rest.
// Pure: the clock is an argument.
#pragma once

#include <string>

#include "tuning/proof.h"
#include "tuning/trial.h"

namespace saturate {

// Each run of the loss guard makes at least this many steps.
inline constexpr double kGuardSteps = 8;

class TuneBudget {
  public:
    // `guards`: losses will be compared too.
    TuneBudget(double seconds, bool guards) : seconds_(seconds), guards_(guards) {}

    // Learns from a trial how long a start and a step take. The slowest recent start counts,
    // because half of the proof's runs use the old settings.
    void see(const TrialResult& result);

    // Makes every run measure at least this long after its start, so that it covers whole epochs.
    void measure_at_least(double seconds) { least_seconds_ = seconds; }

    [[nodiscard]] double seconds() const { return seconds_; }
    // Measured time of one run: a trial of the search, a run of the proof, a run of the loss
    // comparison.
    [[nodiscard]] double trial_seconds() const;
    [[nodiscard]] double proof_seconds() const;
    [[nodiscard]] double guard_seconds() const;
    // Time of the whole run, from start to end.
    [[nodiscard]] double trial_run_seconds() const;
    [[nodiscard]] double proof_run_seconds() const;
    [[nodiscard]] double guard_run_seconds() const;

    // Time set aside for the loss comparison and the proof together.
    [[nodiscard]] double reserve() const;
    // Seconds left for new trials of the search after `elapsed` seconds; 0 or less ends the search.
    [[nodiscard]] double left_for_search(double elapsed) const;
    // True if there is time for one more run of the first five pairs. These runs may end a quarter
    // of the budget late: without them the whole search would be worth nothing.
    [[nodiscard]] bool has_time_for_proof_run(double elapsed) const;
    // True if there is time for one more trial and a whole proof, which may end as late.
    [[nodiscard]] bool has_time_for_late_proof(double elapsed) const;
    // True if both runs of a further pair would end in time.
    [[nodiscard]] bool has_time_for_more(double elapsed) const;
    // Time limit of one run: the rest of the budget plus the allowed delay.
    [[nodiscard]] double most_for_run(double elapsed) const;

    // "12m": a budget that is long enough to finish the proof.
    [[nodiscard]] std::string longer() const;

  private:
    double seconds_;
    bool guards_;
    double start_seconds_ = 2.5;  // assumed until the first trial was seen
    double step_seconds_ = 0;
    double least_seconds_ = 0;
    int trials_ = 0;
};

}  // namespace saturate
