// SPDX-License-Identifier: Apache-2.0
// Forecasts the next value of a column from a window of a table, treated as a one-channel picture
// [1, window, features], with a 2-D CNN. Metric as for `sequence`.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "workloads/forecast.h"

namespace saturate {

struct WindowCnnShape {
    std::int64_t window_size = 24;
    std::int64_t num_features = 16;
    std::int64_t base_channels = 32;
    bool recomputes = false;  // gradient_checkpointing
};

class WindowCnn : public torch::nn::Module {
  public:
    explicit WindowCnn(const WindowCnnShape& shape);
    [[nodiscard]] torch::Tensor forward(const torch::Tensor& window);  // [n, 1, rows, features]

  private:
    bool recomputes_ = false;
    torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
    torch::nn::BatchNorm2d norm1_{nullptr}, norm2_{nullptr};
    torch::nn::Linear fc1_{nullptr}, fc2_{nullptr};
};

// Fields: window float32 [1, rows, features], target float32 [].
[[nodiscard]] std::unique_ptr<Job> window_cnn_job(const WindowCnnShape& shape, ForecastData data);

}  // namespace saturate
