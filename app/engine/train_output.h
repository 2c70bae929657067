// SPDX-License-Identifier: Apache-2.0
// The progress of a training run on stderr: one line that updates in place on a terminal, plain
// lines elsewhere. Called from the training thread.
#pragma once

#include <optional>
#include <string>

#include "engine/trainer.h"
#include "process/signals.h"

namespace saturate {

class TrainOutput final : public TrainObserver {
  public:
    TrainOutput(Signals& interrupts, bool quiet);
    ~TrainOutput() override;  // ends the progress line
    void progress(const TrainProgress& progress) override;
    void say(const std::string& line) override;
    bool stop_wanted(const TrainPlace& place) override;

  private:
    void end_line();

    Signals& interrupts_;
    bool quiet_, on_terminal_;
    bool line_open_ = false;
    std::int64_t last_ns_ = 0;
    std::optional<TrainProgress> last_;
};

// Returns "epoch 3/10  step 1200/4000  loss 0.1234  812 samples/s  busy 96 %  input wait 2 % ...".
[[nodiscard]] std::string progress_text(const TrainProgress& progress);
// "step 12/4000  20 min left", while there is no more to say.
[[nodiscard]] std::string place_text(const TrainPlace& place);
[[nodiscard]] std::string duration_text(double seconds);  // "43 s", "12 min", "3 h 20 min"

}  // namespace saturate
