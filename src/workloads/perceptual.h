// SPDX-License-Identifier: Apache-2.0
// A loss from a second network: the distance between the features of two pictures at the end of the
// third stage of a network shaped like VGG-16. Its filters are fixed random ones, which also
// compare texture, though less well than trained ones. They never change and are not part of the
// model.
#pragma once

#include <torch/types.h>

#include <vector>

namespace saturate {

class PerceptualLoss {
  public:
    PerceptualLoss();

    // Both [n, 3, h, w], 0 to 1; gradients flow into `picture` only.
    [[nodiscard]] torch::Tensor loss(const torch::Tensor& picture, const torch::Tensor& target);

  private:
    [[nodiscard]] torch::Tensor features(torch::Tensor picture) const;

    std::vector<torch::Tensor> weights_, biases_;
    torch::Tensor mean_, deviation_;
};

}  // namespace saturate
