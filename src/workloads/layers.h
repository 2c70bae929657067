// SPDX-License-Identifier: Apache-2.0
// Layers used by several of the reference jobs.
#pragma once

#include <torch/nn/modules/conv.h>

namespace saturate {

// Keeps height and width.
inline torch::nn::Conv2d convolution_3x3(std::int64_t inputs, std::int64_t outputs) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(inputs, outputs, 3).padding(1));
}

}  // namespace saturate
