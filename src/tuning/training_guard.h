// SPDX-License-Identifier: Apache-2.0
// A change of a user's script that breaks or changes its training is no gain, however fast it is:
// as many optimizer steps per batch as before, finite losses, and for a change that is to alter
// nothing but the time, the same losses. By what the records tell; what they do not tell is said.
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "telemetry/record_reader.h"
#include "tuning/loss_guard.h"

namespace saturate {

struct GuardAnswer {
    bool holds = true;
    std::string text;  // one line: why not, or what was compared
};

class TrainingGuard {
  public:
    // A run of the script as it is; two or more tell how far its losses vary by themselves.
    void add_before(const RunRecord& record);
    // A run with changes, the furthest of which goes to this level.
    [[nodiscard]] GuardAnswer judge(const RunRecord& record, Level level) const;

    [[nodiscard]] std::size_t runs() const { return before_.size(); }

  private:
    struct Run {
        std::optional<double> steps_per_batch;
        LossCurve losses;
        std::int64_t not_finite = 0;
    };
    static Run run_of(const RunRecord& record);
    [[nodiscard]] std::string broken(const Run& run) const;
    [[nodiscard]] GuardAnswer compare_losses(const Run& run, Level level) const;
    [[nodiscard]] bool repeats_itself() const;

    std::vector<Run> before_;
};

}  // namespace saturate
