// SPDX-License-Identifier: Apache-2.0
// How a search divides its time: what five pairs of the proof and the comparison of losses will
// take is set aside before the search begins, by what a start and a step of the job take, and the
// search has the rest. Pure: the clock is an argument.
#pragma once

#include <string>

#include "tuning/proof.h"
#include "tuning/trial.h"

namespace saturate {

inline constexpr double kGuardSteps = 8;  // of one run of the loss guard, at least

class TuneBudget {
  public:
    // `guards`: losses will be compared.
    TuneBudget(double seconds, bool guards) : seconds_(seconds), guards_(guards) {}

    // Every trial that ran tells how long a start and a step take; the slowest of late counts, for
    // the proof also runs as it was before.
    void see(const TrialResult& result);

    // Runs last at least so long behind their start: whole epochs are measured.
    void measure_at_least(double seconds) { least_seconds_ = seconds; }

    [[nodiscard]] double seconds() const { return seconds_; }
    // Measured time of one trial of the search, of one run of the proof and of one run of the loss
    // comparison.
    [[nodiscard]] double trial_seconds() const;
    [[nodiscard]] double proof_seconds() const;
    [[nodiscard]] double guard_seconds() const;
    // What such a run takes from start to end.
    [[nodiscard]] double proof_run_seconds() const;
    [[nodiscard]] double guard_run_seconds() const;

    // For guard and proof together.
    [[nodiscard]] double reserve() const;
    // What the search may still begin, with `elapsed` seconds gone: 0 or less ends it.
    [[nodiscard]] double left_for_search(double elapsed) const;
    // Whether another run of the first five pairs may begin. They may end a quarter of the budget
    // late: all that was found until then would be worth nothing without them.
    [[nodiscard]] bool has_time_for_proof_run(double elapsed) const;
    // Whether both runs of a further pair end in time.
    [[nodiscard]] bool has_time_for_more(double elapsed) const;
    // The most that one run may take: up to the end of the budget and what it may be late.
    [[nodiscard]] double most_for_run(double elapsed) const;

    // "12m": a budget with which the proof would have come to its end.
    [[nodiscard]] std::string longer() const;

  private:
    double seconds_;
    bool guards_;
    double start_seconds_ = 2.5;  // of a process that was not seen yet
    double step_seconds_ = 0;
    double least_seconds_ = 0;
    int trials_ = 0;
};

}  // namespace saturate
