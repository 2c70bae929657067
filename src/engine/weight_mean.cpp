// SPDX-License-Identifier: Apache-2.0
#include "engine/weight_mean.h"

namespace saturate {

WeightMean::WeightMean(const NamedTensors& parameters, double decay) : decay_(decay) {
    for (const auto& [name, parameter] : parameters) {
        weights_.push_back(parameter.detach());
        means_.push_back(parameter.detach().clone());
        named_.emplace_back("weights." + name, means_.back());
    }
}

void WeightMean::update() {
    torch::NoGradGuard no_gradients;
    if (!means_.empty()) at::_foreach_lerp_(means_, weights_, 1.0 - decay_);
}

void WeightMean::swap() {
    torch::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        torch::Tensor aside = weights_[i].clone();
        weights_[i].copy_(means_[i]);
        means_[i].copy_(aside);
    }
}

}  // namespace saturate
