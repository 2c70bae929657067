// SPDX-License-Identifier: Apache-2.0
// Image restoration: RGB pictures without detail in, sharp pictures out. A residual network without
// batch normalisation (like EDSR) that learns what to add to its input. Metric: decibels gained
// over the input, which is a bicubic enlargement in the data from `data make`.
#pragma once

#include <torch/nn/modules/conv.h>

#include "workloads/job_data.h"

namespace saturate {

struct RestorationShape {
    std::int64_t base_channels = 32;
    std::int64_t num_blocks = 4;
    bool recomputes = false;  // gradient_checkpointing
};

class RestorationNet : public torch::nn::Module {
  public:
    explicit RestorationNet(const RestorationShape& shape);
    [[nodiscard]] torch::Tensor forward(const torch::Tensor& picture);  // [n, 3, h, w], 0 to 1

  private:
    struct Block;
    torch::nn::Conv2d head_{nullptr}, tail_{nullptr};
    bool recomputes_ = false;
    std::vector<std::shared_ptr<Block>> body_;
};

struct RestorationOptions {
    RestorationShape shape;
    bool use_perceptual = false;
};

// Fields: input, target; both float32 [3, side, side].
[[nodiscard]] std::unique_ptr<Job> restoration_job(const RestorationOptions& options, JobData data);

}  // namespace saturate
