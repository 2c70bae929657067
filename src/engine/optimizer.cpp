// SPDX-License-Identifier: Apache-2.0
#include "engine/optimizer.h"

#include <ATen/core/LegacyTypeDispatch.h>

namespace saturate {

Optimizer::Optimizer(const NamedTensors& parameters, const OptimizerSettings& settings)
    : settings_(settings) {
    torch::NoGradGuard no_gradients;
    for (const auto& [name, parameter] : parameters) {
        names_.push_back(name);
        parameters_.push_back(parameter);
        first_.push_back(torch::zeros_like(parameter));
        if (settings.kind != OptimizerKind::sgd) second_.push_back(torch::zeros_like(parameter));
    }
    torch::TensorOptions options = torch::TensorOptions().dtype(torch::kFloat);
    if (!parameters_.empty()) options = options.device(parameters_[0].device());
    steps_ = torch::zeros({}, options);
    one_ = torch::ones({}, options);
    learning_rate_there_ = torch::zeros({}, options);
    rate_is_there_ = steps_.is_cuda() || settings.replayed;
}

void Optimizer::clear_gradients(bool set_to_none) {
    for (torch::Tensor& parameter : parameters_) {
        if (set_to_none) {
            parameter.mutable_grad().reset();
        } else if (parameter.grad().defined()) {
            parameter.mutable_grad().zero_();
        }
    }
}

const std::vector<torch::Tensor>& Optimizer::gradients() {
    gather();
    return gradients_;
}

void Optimizer::gather() {
    with_.clear(), gradients_.clear(), with_first_.clear(), with_second_.clear();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const torch::Tensor& gradient = parameters_[i].grad();
        if (!gradient.defined()) continue;
        with_.push_back(parameters_[i]);
        gradients_.push_back(gradient);
        with_first_.push_back(first_[i]);
        if (!second_.empty()) with_second_.push_back(second_[i]);
    }
    with_steps_.assign(with_.size(), steps_);
}

void Optimizer::set_learning_rate(double learning_rate) {
    if (rate_is_there_ && learning_rate != learning_rate_)
        learning_rate_there_.fill_(learning_rate);
    learning_rate_ = learning_rate;
}

void Optimizer::step(const std::optional<torch::Tensor>& found_infinite) {
    torch::NoGradGuard no_gradients;
    gather();
    if (with_.empty()) return;
    at::AutoDispatchBelowADInplaceOrView below;  // no autograd needed here
    steps_.add_(one_);
    if (settings_.fused) {
        update(with_, gradients_, with_first_, with_second_, found_infinite);
    } else {
        for (std::size_t i = 0; i < with_.size(); ++i) {
            std::vector<torch::Tensor> second;
            if (!with_second_.empty()) second = {with_second_[i]};
            update({with_[i]}, {gradients_[i]}, {with_first_[i]}, second, found_infinite);
        }
    }
    if (found_infinite) steps_.sub_(*found_infinite);  // a skipped step does not count
    is_first_ = false;
}

void Optimizer::update(torch::TensorList parameters, torch::TensorList gradients,
                       torch::TensorList first, torch::TensorList second,
                       const std::optional<torch::Tensor>& found_infinite) {
    constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
    torch::TensorList steps = torch::TensorList(with_steps_).slice(0, parameters.size());
    double decay = settings_.weight_decay;
    // A number on the CPU, a tensor on a GPU: neither reads a value back from the device.
    bool on_cpu = !rate_is_there_;
    switch (settings_.kind) {
        case OptimizerKind::adamw:
            on_cpu ? at::_fused_adamw_(parameters, gradients, first, second, {}, steps,
                                       learning_rate_, kBeta1, kBeta2, decay, kEpsilon, false,
                                       false, {}, found_infinite)
                   : at::_fused_adamw_(parameters, gradients, first, second, {}, steps,
                                       learning_rate_there_, kBeta1, kBeta2, decay, kEpsilon, false,
                                       false, {}, found_infinite);
            break;
        case OptimizerKind::adam:
            on_cpu ? at::_fused_adam_(parameters, gradients, first, second, {}, steps,
                                      learning_rate_, kBeta1, kBeta2, decay, kEpsilon, false, false,
                                      {}, found_infinite)
                   : at::_fused_adam_(parameters, gradients, first, second, {}, steps,
                                      learning_rate_there_, kBeta1, kBeta2, decay, kEpsilon, false,
                                      false, {}, found_infinite);
            break;
        case OptimizerKind::sgd:
            on_cpu
                ? at::_fused_sgd_(parameters, gradients, first, decay, settings_.momentum,
                                  learning_rate_, 0.0, false, false, is_first_, {}, found_infinite)
                : at::_fused_sgd_(parameters, gradients, first, decay, settings_.momentum,
                                  learning_rate_there_, 0.0, false, false, is_first_, {},
                                  found_infinite);
            break;
    }
}

NamedTensors Optimizer::state() const {
    NamedTensors out{{"steps", steps_}};
    const char* first = settings_.kind == OptimizerKind::sgd ? "momentum." : "exp_avg.";
    for (std::size_t i = 0; i < names_.size(); ++i) {
        out.emplace_back(first + names_[i], first_[i]);
        if (!second_.empty()) out.emplace_back("exp_avg_sq." + names_[i], second_[i]);
    }
    return out;
}

void Optimizer::restored() { is_first_ = false; }

}  // namespace saturate
