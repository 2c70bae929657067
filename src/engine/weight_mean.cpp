// SPDX-License-Identifier: Apache-2.0
#include "engine/weight_mean.h"

#include <algorithm>
#include <exception>

#include "engine/view_like.h"

namespace saturate {

WeightMean::WeightMean(const NamedTensors& parameters, double decay) : decay_(decay) {
    for (const auto& [name, parameter] : parameters) {
        weights_.push_back(parameter.detach());
        means_.push_back(parameter.detach().clone());
        named_.emplace_back("weights." + name, means_.back());
    }
    if (weights_.empty()) return;
    std::size_t most = 0;
    for (const torch::Tensor& weight : weights_) most = std::max(most, weight.nbytes());
    torch::Tensor room =
        torch::empty({static_cast<std::int64_t>(most)}, weights_[0].options().dtype(torch::kByte));
    for (const torch::Tensor& weight : weights_)
        aside_.push_back(view_like(room.narrow(0, 0, static_cast<std::int64_t>(weight.nbytes()))
                                       .view(weight.scalar_type()),
                                   0, weight));
}

void WeightMean::update() {
    torch::NoGradGuard no_gradients;
    if (!means_.empty()) at::_foreach_lerp_(means_, weights_, 1.0 - decay_);
}

void WeightMean::swap() {
    torch::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        aside_[i].copy_(weights_[i]);
        weights_[i].copy_(means_[i]);
        means_[i].copy_(aside_[i]);
    }
}

MeanInPlace::~MeanInPlace() {
    if (!mean_) return;
    try {
        mean_->swap();
    } catch (const std::exception&) {
        // The device is lost. An error that leaves a destructor would end the process, without the
        // record and the summary.
    }
}

}  // namespace saturate
