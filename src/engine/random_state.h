// SPDX-License-Identifier: Apache-2.0
// Copies and restores the state of LibTorch's random generator of a device.
#pragma once

#include <torch/types.h>

namespace saturate {

[[nodiscard]] torch::Tensor random_state(const torch::Device& device);
void set_random_state(const torch::Device& device, const torch::Tensor& state);

}  // namespace saturate
