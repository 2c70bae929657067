// SPDX-License-Identifier: Apache-2.0
// Mixed precision of a scope and the gradient scaler that fp16 needs. Everything stays on the
// device: neither reads a value back. Training thread.
#pragma once

#include <torch/types.h>

#include "config/settings.h"

namespace saturate {

// What Python's torch.autocast does between enter and exit; fp32 does nothing.
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

// Multiplies the loss so that small gradients survive fp16; a step with infinite gradients is
// skipped by the optimizer on the device, and the factor halved.
class GradientScaler {
  public:
    explicit GradientScaler(torch::Device device, double start = 65536.0,
                            std::int64_t growth_interval = 2000);

    [[nodiscard]] torch::Tensor scaled(const torch::Tensor& loss) const { return loss * scale; }
    void unscale(torch::TensorList gradients);  // and looks for non-finite ones
    void update();

    // Part of the checkpoint.
    torch::Tensor scale, growth;
    torch::Tensor found_infinite;  // 1 when the last step was skipped

  private:
    std::int64_t growth_interval_;
};

// Shortens the gradients to this length, on the device.
void clip_gradients(torch::TensorList gradients, double longest);

}  // namespace saturate
