// SPDX-License-Identifier: Apache-2.0
// Gradient checkpointing: activations inside `part` are computed again in the backward pass instead
// of being kept. A job whose setting gradient_checkpointing is on wraps the blocks of its model.
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

namespace saturate {

using Block = std::function<torch::Tensor(const torch::Tensor&)>;

// Whether `part` draws random numbers (dropout), which must come again. None: the generator is left
// alone, which a step that is captured needs.
enum class RandomNumbers { drawn, none };

// While it lives, what this thread computes is captured as a graph: a generator has no state there
// that could be kept, so numbers that must come again are refused.
class InCapture {
  public:
    InCapture();
    ~InCapture();
    InCapture(const InCapture&) = delete;
    InCapture& operator=(const InCapture&) = delete;
};

// The same value and gradients as part(input). Throws c10::Error for what cannot be captured. What `part` refers to must live until the backward
// pass. `buffers`: what a run of it changes besides (the statistics of batch normalisation), which
// the second run leaves alone.
[[nodiscard]] torch::Tensor recomputed(Block part, const torch::Tensor& input,
                                       RandomNumbers random = RandomNumbers::drawn,
                                       std::vector<torch::Tensor> buffers = {});

}  // namespace saturate
