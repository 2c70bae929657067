// SPDX-License-Identifier: Apache-2.0
// Gradient checkpointing: activations inside `part` are computed again in the backward pass instead
// of being kept. A job whose setting gradient_checkpointing is on wraps the blocks of its model.
#pragma once

#include <torch/types.h>

#include <functional>

namespace saturate {

using Block = std::function<torch::Tensor(const torch::Tensor&)>;

// The same value and gradients as part(input), dropout included. What `part` refers to must live
// until the backward pass.
[[nodiscard]] torch::Tensor recomputed(Block part, const torch::Tensor& input);

}  // namespace saturate
