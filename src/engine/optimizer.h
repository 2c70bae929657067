// SPDX-License-Identifier: Apache-2.0
// AdamW, Adam and SGD over all parameters in one fused call. Checkpoints save its
// tensors. Training thread.
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
    double momentum = 0.9;  // SGD only
    bool fused = true;      // false: one call per parameter, same arithmetic
    bool replayed = false;  // updates are recorded: varying values must be on the device
};

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

class Optimizer {
  public:
    Optimizer(const NamedTensors& parameters, const OptimizerSettings& settings);

    // Applies to all later updates. Not part of step(), because a captured step contains step().
    void set_learning_rate(double learning_rate);
    // Does one update without allocating memory. Parameters without a gradient stay as they are. If
    // the scaler's `found_infinite` is 1, the device skips the update.
    void step(const std::optional<torch::Tensor>& found_infinite);
    // Drops the gradients or fills them with zeros.
    void clear_gradients(bool set_to_none);
    // The current gradients, one per parameter that has one. Valid until the next call.
    [[nodiscard]] const std::vector<torch::Tensor>& gradients();

    // The live tensors to save in a checkpoint, by name, e.g. "exp_avg.first.weight".
    [[nodiscard]] NamedTensors state() const;
    void restored();  // call after filling the tensors of state()

  private:
    void gather();
    void update(torch::TensorList parameters, torch::TensorList gradients, torch::TensorList first,
                torch::TensorList second, const std::optional<torch::Tensor>& found_infinite);

    OptimizerSettings settings_;
    std::vector<std::string> names_;
    std::vector<torch::Tensor> parameters_, first_, second_;  // moments; second_ only for Adam
    torch::Tensor steps_;                                     // shared by all parameters
    torch::Tensor one_;                                       // adding a plain 1 would allocate
    double learning_rate_ = 0;
    bool rate_is_there_ = false;  // the rate is a tensor: on a GPU, or for a captured step
    torch::Tensor learning_rate_there_;
    bool is_first_ = true;  // SGD: the momentum starts as the gradient
    // For the parameters that have a gradient in this step.
    std::vector<torch::Tensor> with_, gradients_, with_first_, with_second_, with_steps_;
};

}  // namespace saturate
