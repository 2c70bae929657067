// SPDX-License-Identifier: Apache-2.0
// The state of a run that checkpoints save: numbers (TrainFacts) and live tensors (TrainTensors).
// Nothing else of the trainer is saved. Training thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint.h"
#include "engine/step.h"
#include "engine/weight_mean.h"
#include "pipeline/loader.h"

namespace saturate {

struct TrainFacts {
    std::int64_t step = 0;     // steps done
    std::int64_t samples = 0;  // of all ranks
    LoaderState position;      // after the last complete step
    bool epoch_ended = false;  // the last batch is taken, but the end not yet handled
    std::int64_t split = 1;    // micro-batches per batch
    std::optional<double> metric, best, first_metric;
    std::optional<std::int64_t> best_step;
    std::int64_t evaluations_worse = 0;

    // Members of an object, without `step`, which is stored next to it.
    [[nodiscard]] Json json() const;
    [[nodiscard]] static TrainFacts of(std::int64_t step, const Json& json);
};

// The tensors of a model, its optimizer, gradient scaler, moving average and random numbers. All
// are live tensors except the random states.
class TrainTensors {
  public:
    TrainTensors(Job& job, TrainingStep& step, std::optional<WeightMean>& mean,
                 DeviceBackend& backend);

    [[nodiscard]] NamedTensors model() const;
    [[nodiscard]] NamedTensors shared();  // equal on all ranks

    // Copies the tensors to the host. With a moving average, the saved model is the average, which
    // is what was evaluated.
    [[nodiscard]] Checkpoint take() const;
    // Fills the live tensors. Drops tensors that this device or precision does not use, starts
    // missing ones anew, and returns a line about each. Random states of ranks 1 and up go to
    // `others`. Throws UserError if the checkpoint is of another model.
    [[nodiscard]] std::vector<std::string> put(const FoundCheckpoint& found, NamedTensors& others);

  private:
    [[nodiscard]] NamedTensors state() const;

    Job& job_;
    TrainingStep& step_;
    std::optional<WeightMean>& mean_;
    DeviceBackend& backend_;
};

}  // namespace saturate
