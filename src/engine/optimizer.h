// SPDX-License-Identifier: Apache-2.0
// AdamW, Adam and SGD over all parameters in one fused call. Its tensors are part of the
// checkpoint. Training thread.
#pragma once

#include <torch/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace saturate {

enum class OptimizerKind { adamw, adam, sgd };

struct OptimizerSettings {
    OptimizerKind kind = OptimizerKind::adamw;
    double weight_decay = 0;
    double momentum = 0.9;  // of sgd
    bool fused = true;      // false: one call per parameter, the same arithmetic
    bool replayed = false;  // its updates are recorded: what changes must lie on the device
};

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

class Optimizer {
  public:
    Optimizer(const NamedTensors& parameters, const OptimizerSettings& settings);

    // Of the updates from now on. Apart from step(), because a captured step is recorded with it.
    void set_learning_rate(double learning_rate);
    // One update, which takes no memory. Parameters without a gradient stay as they are.
    // `found_infinite` of the scaler skips the update on the device when it is 1.
    void step(const std::optional<torch::Tensor>& found_infinite);
    // Drops the gradients, or fills them with zeros.
    void clear_gradients(bool set_to_none);
    // Gradients as they stand, one per parameter that has one. Valid until the next call.
    [[nodiscard]] const std::vector<torch::Tensor>& gradients();

    // By name, e.g. "exp_avg.first.weight": what a checkpoint keeps. The tensors are the live ones.
    [[nodiscard]] NamedTensors state() const;
    void restored();  // after the tensors of state() were filled from a checkpoint

  private:
    void gather();
    void update(torch::TensorList parameters, torch::TensorList gradients, torch::TensorList first,
                torch::TensorList second, const std::optional<torch::Tensor>& found_infinite);

    OptimizerSettings settings_;
    std::vector<std::string> names_;
    std::vector<torch::Tensor> parameters_, first_, second_;  // momenta; second_ only for Adam
    torch::Tensor steps_;                                     // shared by all parameters
    torch::Tensor one_;                                       // a number would be made anew
    double learning_rate_ = 0;
    bool rate_is_there_ = false;  // on a GPU, or in a captured step, which reads it anew
    torch::Tensor learning_rate_there_;
    bool is_first_ = true;  // sgd: the momentum begins as the gradient
    // Of the parameters that have a gradient, in this step.
    std::vector<torch::Tensor> with_, gradients_, with_first_, with_second_, with_steps_;
};

}  // namespace saturate
