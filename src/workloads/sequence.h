// SPDX-License-Identifier: Apache-2.0
// Forecasts the next value of a column from a window of rows with an LSTM or GRU. Metric: the error
// relative to the persistence forecast (the value stays as it is); below 1 is better than that.
#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include "workloads/forecast.h"

namespace saturate {

struct SequenceShape {
    std::int64_t num_features = 16;
    std::int64_t hidden_size = 64;
    std::int64_t num_layers = 2;
    bool is_gru = false;
    bool recomputes = false;  // gradient_checkpointing
};

class SequenceNet : public torch::nn::Module {
  public:
    explicit SequenceNet(const SequenceShape& shape);
    [[nodiscard]] torch::Tensor forward(const torch::Tensor& window);  // [n, rows, features]

  private:
    [[nodiscard]] torch::Tensor forward_by_layers(const torch::Tensor& window);

    bool recomputes_ = false;
    torch::nn::LSTM lstm_{nullptr};
    torch::nn::GRU gru_{nullptr};
    torch::nn::Linear out_{nullptr};
};

// Fields: window float32 [rows, features], target float32 [].
[[nodiscard]] std::unique_ptr<Job> sequence_job(const SequenceShape& shape, ForecastData data);

}  // namespace saturate
