// SPDX-License-Identifier: Apache-2.0
// Classifies grey pictures of 128 x 128 with the residual network of 18 layers (He et al., 2015;
// its first layer takes one channel). Names follow torchvision, so weights can
// be exchanged with it.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "workloads/job_data.h"

namespace saturate {

struct ClassifierShape {
    std::int64_t base_channels = 64;
    std::int64_t num_classes = 10;
    bool recomputes = false;  // gradient_checkpointing
};

class ClassifierNet : public torch::nn::Module {
  public:
    explicit ClassifierNet(const ClassifierShape& shape);
    [[nodiscard]] torch::Tensor forward(const torch::Tensor& picture);  // [n, 1, h, w]

  private:
    struct Block;
    torch::nn::Conv2d conv1_{nullptr};
    torch::nn::BatchNorm2d bn1_{nullptr};
    std::vector<std::shared_ptr<Block>> blocks_;
    torch::nn::Linear fc_{nullptr};
    bool recomputes_ = false;
};

// Fields: image float32 [1, h, w], label int64 [].
[[nodiscard]] std::unique_ptr<Job> classifier_job(const ClassifierShape& shape, JobData data);

}  // namespace saturate
