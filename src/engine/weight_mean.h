// SPDX-License-Identifier: Apache-2.0
// A moving mean of the weights (EMA), which evaluates better than the weights themselves. Training
// thread.
#pragma once

#include "engine/optimizer.h"

namespace saturate {

class WeightMean {
  public:
    WeightMean(const NamedTensors& parameters, double decay);
    void update();  // after each step
    // Puts the mean into the model and the weights aside, or back. In place: captured steps keep
    // their addresses.
    void swap();
    [[nodiscard]] const NamedTensors& state() const { return named_; }  // the live tensors

  private:
    double decay_;
    std::vector<torch::Tensor> weights_, means_;
    NamedTensors named_;
};

}  // namespace saturate
