// SPDX-License-Identifier: Apache-2.0
// Rejects a change of a user's script that breaks or alters its training, however fast it is. The
// change must keep the optimizer steps per batch and finite losses; a change of level safe must
// also keep the same losses. If a script repeats its losses, a loader setting may reorder its
// random numbers: that is the same training with other draws. It is allowed from level numerics on,
// and reported. The guard uses only the run records and says what they do not tell.
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "telemetry/record_reader.h"
#include "tuning/loss_guard.h"

namespace saturate {

// The losses of a user's script, by samples seen.
[[nodiscard]] LossCurve losses_of(const RunRecord& record);

struct GuardAnswer {
    bool holds = true;
    std::string text;          // one line: why not, or what was compared
    bool other_draws = false;  // the loss takes the same course with other random numbers
    // The loss takes another course, which can happen by chance in one of many runs.
    bool is_by_course = false;
};

struct GuardLevels {
    Level of_change = Level::safe;  // the highest level among the changes
    Level allowed = Level::safe;
    bool swallows_errors = false;  // the script goes on after any error, so batches may be lost
};

class TrainingGuard {
  public:
    // Adds a run of the unchanged script. Two or more show how far its losses vary on their own.
    void add_before(const RunRecord& record);
    // `earlier`: losses of other runs with the same changes, judged together with this run.
    [[nodiscard]] GuardAnswer judge(const RunRecord& record, const GuardLevels& levels,
                                    std::vector<LossCurve> earlier = {}) const;

    [[nodiscard]] std::size_t runs() const { return before_.size(); }

  private:
    struct Run {
        std::optional<double> steps_per_batch;
        double batches = 0;  // taken and skipped ones
        LossCurve losses;
        std::int64_t not_finite = 0;
        std::vector<std::int64_t> epochs;  // steps of each whole epoch
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
