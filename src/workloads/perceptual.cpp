// SPDX-License-Identifier: Apache-2.0
#include "workloads/perceptual.h"

#include <ATen/CPUGeneratorImpl.h>

#include <array>
#include <cmath>

namespace saturate {

namespace {

// VGG-16 up to its third stage: the channels of each convolution, and whether the picture is halved
// before it.
struct Layer {
    std::int64_t inputs, outputs;
    bool halves;
};
constexpr std::array<Layer, 7> kLayers = {{{3, 64, false},
                                           {64, 64, false},
                                           {64, 128, true},
                                           {128, 128, false},
                                           {128, 256, true},
                                           {256, 256, false},
                                           {256, 256, false}}};

}  // namespace

PerceptualLoss::PerceptualLoss() {
    at::Generator generator = at::detail::createCPUGenerator(16);
    for (const Layer& layer : kLayers) {
        double scale = std::sqrt(2.0 / static_cast<double>(layer.inputs * 9));
        weights_.push_back(
            torch::randn({layer.outputs, layer.inputs, 3, 3}, generator, torch::kFloat) * scale);
        biases_.push_back(torch::zeros({layer.outputs}));
    }
    mean_ = torch::tensor({0.485f, 0.456f, 0.406f}).view({1, 3, 1, 1});
    deviation_ = torch::tensor({0.229f, 0.224f, 0.225f}).view({1, 3, 1, 1});
}

torch::Tensor PerceptualLoss::features(torch::Tensor x) const {
    x = (x - mean_) / deviation_;
    for (std::size_t i = 0; i < kLayers.size(); ++i) {
        if (kLayers[i].halves) x = torch::max_pool2d(x, 2);
        x = torch::relu(torch::conv2d(x, weights_[i], biases_[i], 1, 1));
    }
    return x;
}

torch::Tensor PerceptualLoss::loss(const torch::Tensor& picture, const torch::Tensor& target) {
    if (weights_[0].device() != picture.device()) {
        for (auto* list : {&weights_, &biases_}) {
            for (torch::Tensor& tensor : *list) tensor = tensor.to(picture.device());
        }
        mean_ = mean_.to(picture.device());
        deviation_ = deviation_.to(picture.device());
    }
    torch::Tensor wanted;
    {
        torch::NoGradGuard no_grad;
        wanted = features(target);
    }
    return torch::mse_loss(features(picture), wanted);
}

}  // namespace saturate
