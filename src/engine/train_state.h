// SPDX-License-Identifier: Apache-2.0
// What a checkpoint holds of a run: numbers (TrainFacts) and live tensors (TrainTensors). The
// trainer works with them and writes down nothing else. Training thread.
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
    LoaderState position;      // after the last step that is complete
    bool epoch_ended = false;  // its last batch was taken, its end not yet acted on
    std::int64_t split = 1;    // micro-batches per batch
    std::optional<double> metric, best, first_metric;
    std::optional<std::int64_t> best_step;
    std::int64_t evaluations_worse = 0;

    // As members of an object; `step` is not among them, it stands beside.
    [[nodiscard]] Json json() const;
    [[nodiscard]] static TrainFacts of(std::int64_t step, const Json& json);
};

// The tensors of a model, its optimizer, scaler, moving mean and random numbers, all live but the
// random states.
class TrainTensors {
  public:
    TrainTensors(Job& job, TrainingStep& step, std::optional<WeightMean>& mean,
                 DeviceBackend& backend);

    [[nodiscard]] NamedTensors model() const;
    [[nodiscard]] NamedTensors shared();  // what all ranks have the same

    // Copies on the host. With a moving mean the model is the mean, which was judged.
    [[nodiscard]] Checkpoint take() const;
    // Fills them. What another device or precision has no use for, or lacks, is left out or begun
    // anew, and told in a line each. Random states of further ranks go to `others`. Throws
    // UserError for another model.
    [[nodiscard]] std::vector<std::string> put(const FoundCheckpoint& found, NamedTensors& others);

  private:
    [[nodiscard]] NamedTensors state() const;

    Job& job_;
    TrainingStep& step_;
    std::optional<WeightMean>& mean_;
    DeviceBackend& backend_;
};

}  // namespace saturate
