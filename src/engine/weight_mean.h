// SPDX-License-Identifier: Apache-2.0
// A moving average of the weights (EMA), which evaluates better than the weights themselves.
// Training thread.
#pragma once

#include <optional>
#include <vector>

#include "engine/optimizer.h"

namespace saturate {

class WeightMean {
  public:
    WeightMean(const NamedTensors& parameters, double decay);
    void update();  // call after each step
    // Swaps the model's weights with the average. Works in place, because captured steps
    // keep their addresses, and takes no memory: half a swap could not be undone.
    void swap();
    // The live tensors: the average, or while it is swapped in, the weights. Named "weights.<name>"
    // for a checkpoint, whose model is the average.
    [[nodiscard]] const NamedTensors& state() const { return named_; }

  private:
    double decay_;
    std::vector<torch::Tensor> weights_, means_;
    std::vector<torch::Tensor> aside_;  // one per weight; all of them share one piece of memory
    NamedTensors named_;
};

// Puts the average into the model for a scope, if there is one. Then the weights come back, unless
// the device is lost, whose weights nobody can read.
class MeanInPlace {
  public:
    explicit MeanInPlace(std::optional<WeightMean>& mean) : mean_(mean) {
        if (mean_) mean_->swap();
    }
    ~MeanInPlace();
    MeanInPlace(const MeanInPlace&) = delete;
    MeanInPlace& operator=(const MeanInPlace&) = delete;

  private:
    std::optional<WeightMean>& mean_;
};

}  // namespace saturate
