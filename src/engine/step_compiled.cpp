// SPDX-License-Identifier: Apache-2.0
// The part of TrainingStep that uses the compiled gradient graph.
#include "base/clock.h"
#include "engine/compiled_step.h"
#include "engine/step.h"

namespace saturate {

// Compiles on the first batch: the graph is for that shape and layout.
void TrainingStep::compile(const TensorBatch& batch) {
    wants_compiled_ = false;
    if (scaler_) {
        note_ = "compile: not compiled: the gradient scaler of fp16 works on autograd's gradients";
        return;
    }
    Autocast mixed(backend_.device().type(), settings_.precision);
    CompileOutcome outcome = compile_step(job_, batch, compile_settings());
    compiled_ = std::move(outcome.step);
    note_ = outcome.message;
    all_parameters_ = job_.model().parameters();
}

bool TrainingStep::add_compiled_gradients(const TensorBatch& given, double weight,
                                          StepTimes& times) {
    if (!compiled_ && !wants_compiled_) return false;
    TensorBatch batch = settings_.channels_last ? as_channels_last(given) : given;
    if (wants_compiled_) compile(batch);
    if (!compiled_ || !compiled_->accepts(batch)) return false;
    torch::NoGradGuard no_gradients;
    std::int64_t begin = now_ns();
    torch::Tensor loss = compiled_->run(batch, graph_gradients_);
    std::int64_t done = now_ns();
    if (weight != 1.0) loss = loss * weight;
    loss_ = loss_.defined() ? loss_ + loss : loss;
    for (std::size_t i = 0; i < all_parameters_.size(); ++i) {
        if (!all_parameters_[i].requires_grad()) continue;
        if (double share = weight * rank_share(); share != 1.0) graph_gradients_[i].mul_(share);
        torch::Tensor& sum = all_parameters_[i].mutable_grad();
        if (sum.defined())
            sum.add_(graph_gradients_[i]);
        else
            sum = std::move(graph_gradients_[i]);
    }
    times.forward_ns += done - begin;  // the graph does forward and backward
    times.backward_ns += now_ns() - done;
    return true;
}

}  // namespace saturate
