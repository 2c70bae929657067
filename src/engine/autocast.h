// SPDX-License-Identifier: Apache-2.0
// Mixed precision for a scope, and the gradient scaler that fp16 needs. Neither reads a value back
// from the device. Training thread.
#pragma once

#include <torch/types.h>

#include "config/settings.h"

namespace saturate {

// Does in a scope what Python's torch.autocast does in a with block; fp32 does nothing.
class Autocast {
  public:
    Autocast(torch::DeviceType device, Precision precision);
    ~Autocast();
    Autocast(const Autocast&) = delete;
    Autocast& operator=(const Autocast&) = delete;

  private:
    torch::DeviceType device_;
    bool on_, was_enabled_ = false, was_cached_ = false;
    torch::ScalarType was_type_ = torch::kFloat;
};

// Scales the loss up so that small gradients survive fp16. If a gradient is infinite, the optimizer
// skips the step on the device and the factor is halved.
class GradientScaler {
  public:
    explicit GradientScaler(torch::Device device, double start = 65536.0,
                            std::int64_t growth_interval = 2000);

    [[nodiscard]] torch::Tensor scaled(const torch::Tensor& loss) const { return loss * scale; }
    void unscale(torch::TensorList gradients);  // and looks for non-finite ones
    void update();

    // Saved in checkpoints.
    torch::Tensor scale, growth;
    torch::Tensor found_infinite;  // 1 when the last step was skipped

  private:
    std::int64_t growth_interval_;
};

// Scales the gradients down to a total length of at most `longest`, on the device.
void clip_gradients(torch::TensorList gradients, double longest);

}  // namespace saturate
