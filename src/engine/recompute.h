// SPDX-License-Identifier: Apache-2.0
// Gradient checkpointing: computes the activations inside `part` again in the backward pass instead
// of keeping them. A job with gradient_checkpointing: true wraps the blocks of its model.
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

namespace saturate {

using Block = std::function<torch::Tensor(const torch::Tensor&)>;

// Whether `part` draws random numbers (dropout) that the second run must repeat. With `none` the
// generator is left alone, which a captured step needs.
enum class RandomNumbers { drawn, none };

// While it lives, this thread's work is captured as a graph. The generator's state cannot be saved
// during capture, so recomputed() refuses RandomNumbers::drawn.
class InCapture {
  public:
    InCapture();
    ~InCapture();
    InCapture(const InCapture&) = delete;
    InCapture& operator=(const InCapture&) = delete;
};

// Returns the same value and gradients as part(input). Throws c10::Error if it cannot be captured.
// Everything that `part` refers to must live until the backward pass. `buffers`: tensors that a run
// of `part` updates (batch normalisation statistics); the second run leaves them unchanged.
[[nodiscard]] torch::Tensor recomputed(Block part, const torch::Tensor& input,
                                       RandomNumbers random = RandomNumbers::drawn,
                                       std::vector<torch::Tensor> buffers = {});

}  // namespace saturate
