// SPDX-License-Identifier: Apache-2.0
#include "engine/recompute.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>

namespace saturate {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Held : torch::CustomClassHolder {
    explicit Held(Block held) : part(std::move(held)) {}
    Block part;
    bool autocast = false;
    torch::ScalarType type = torch::kFloat;
};

torch::Tensor random_state(const torch::Device& device) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    std::lock_guard lock(generator.mutex());
    return generator.get_state();
}

void set_random_state(const torch::Device& device, const torch::Tensor& state) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    std::lock_guard lock(generator.mutex());
    generator.set_state(state);
}

// Calls itself again in the backward pass; parameter gradients are added up there as usual.
struct Recompute : torch::autograd::Function<Recompute> {
    // `anchor` needs a gradient, so that this is part of the graph even when `input` needs none.
    static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input,
                                 const torch::Tensor& anchor,
                                 const c10::intrusive_ptr<Held>& held) {
        (void)anchor;
        context->saved_data["random"] = random_state(input.device());
        context->saved_data["held"] = c10::IValue::make_capsule(held);
        context->save_for_backward({input});
        torch::NoGradGuard no_gradients;
        return held->part(input);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        auto held =
            c10::static_intrusive_pointer_cast<Held>(context->saved_data["held"].toCapsule());
        torch::Tensor kept = context->get_saved_variables()[0];
        torch::Tensor input = kept.detach().requires_grad_(kept.requires_grad());
        torch::Tensor now = random_state(input.device());
        set_random_state(input.device(), context->saved_data["random"].toTensor());
        torch::Tensor output;
        {
            torch::AutoGradMode with_gradients(true);
            bool was = at::autocast::is_autocast_enabled(input.device().type());
            torch::ScalarType type = at::autocast::get_autocast_dtype(input.device().type());
            at::autocast::set_autocast_enabled(input.device().type(), held->autocast);
            at::autocast::set_autocast_dtype(input.device().type(), held->type);
            output = held->part(input);
            at::autocast::set_autocast_enabled(input.device().type(), was);
            at::autocast::set_autocast_dtype(input.device().type(), type);
        }
        set_random_state(input.device(), now);
        torch::autograd::backward({output}, {gradients[0]});
        return {input.grad(), torch::Tensor(), torch::Tensor()};
    }
};

}  // namespace

torch::Tensor recomputed(Block part, const torch::Tensor& input) {
    if (!torch::GradMode::is_enabled()) return part(input);
    auto held = c10::make_intrusive<Held>(std::move(part));
    held->autocast = at::autocast::is_autocast_enabled(input.device().type());
    held->type = at::autocast::get_autocast_dtype(input.device().type());
    torch::Tensor anchor = torch::zeros({}, torch::TensorOptions().requires_grad(true));
    return Recompute::apply(input, anchor, held);
}

}  // namespace saturate
