// SPDX-License-Identifier: Apache-2.0
// The state of LibTorch's generator of a device: a copy to keep, and to put back.
#pragma once

#include <torch/types.h>

namespace saturate {

[[nodiscard]] torch::Tensor random_state(const torch::Device& device);
void set_random_state(const torch::Device& device, const torch::Tensor& state);

}  // namespace saturate
