// SPDX-License-Identifier: Apache-2.0
// A change of a user's script that breaks or changes its training is no gain, however fast it is:
// as many optimizer steps per batch as before, finite losses, and for a change that is to alter
// nothing but the time, the same losses. Where a script repeats its losses, a loader's settings may
// bring its random numbers in another order: the same training with other draws, which is allowed
// from level numerics on and said. By what the records tell; what they do not tell is said.
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "telemetry/record_reader.h"
#include "tuning/loss_guard.h"

namespace saturate {

// The losses of a run of a user's script, by samples seen.
[[nodiscard]] LossCurve losses_of(const RunRecord& record);

struct GuardAnswer {
    bool holds = true;
    std::string text;           // one line: why not, or what was compared
    bool other_draws = false;   // the same course of the loss, by other random numbers
    bool is_by_course = false;  // ... or another course, which one of many runs has by chance
};

struct GuardLevels {
    Level of_change = Level::safe;  // the furthest that one of the changes goes
    Level allowed = Level::safe;
};

class TrainingGuard {
  public:
    // A run of the script as it is; two or more tell how far its losses vary by themselves.
    void add_before(const RunRecord& record);
    // `earlier`: losses of other runs with the same changes, to be judged together with this one.
    [[nodiscard]] GuardAnswer judge(const RunRecord& record, const GuardLevels& levels,
                                    std::vector<LossCurve> earlier = {}) const;

    [[nodiscard]] std::size_t runs() const { return before_.size(); }

  private:
    struct Run {
        std::optional<double> steps_per_batch;
        double batches = 0;  // whatever became of them
        LossCurve losses;
        std::int64_t not_finite = 0;
        std::vector<std::int64_t> epochs;  // steps of each
    };
    static Run run_of(const RunRecord& record);
    [[nodiscard]] std::string broken(const Run& run) const;
    [[nodiscard]] std::string shorter(const Run& run) const;
    [[nodiscard]] GuardAnswer compare_losses(const Run& run, const GuardLevels& levels,
                                             std::vector<LossCurve> earlier) const;
    [[nodiscard]] std::size_t repeated() const;

    std::vector<Run> before_;
};

}  // namespace saturate
