// SPDX-License-Identifier: Apache-2.0
// A moving mean of the weights (EMA), which evaluates better than the weights themselves. Training
// thread.
#pragma once

#include <optional>
#include <vector>

#include "engine/optimizer.h"

namespace saturate {

class WeightMean {
  public:
    WeightMean(const NamedTensors& parameters, double decay);
    void update();  // after each step
    // Puts the mean into the model and the weights aside, or back. In place: captured steps keep
    // their addresses.
    void swap();
    // The live tensors: the mean, or while it is swapped in, the weights. Named for a checkpoint,
    // whose model is the mean: "weights.<name>".
    [[nodiscard]] const NamedTensors& state() const { return named_; }

  private:
    double decay_;
    std::vector<torch::Tensor> weights_, means_;
    NamedTensors named_;
};

// The mean in the model's place for one scope, if there is a mean; the weights come back in any
// case.
class MeanInPlace {
  public:
    explicit MeanInPlace(std::optional<WeightMean>& mean) : mean_(mean) {
        if (mean_) mean_->swap();
    }
    ~MeanInPlace() {
        if (mean_) mean_->swap();
    }
    MeanInPlace(const MeanInPlace&) = delete;
    MeanInPlace& operator=(const MeanInPlace&) = delete;

  private:
    std::optional<WeightMean>& mean_;
};

}  // namespace saturate
