// SPDX-License-Identifier: Apache-2.0
#include "engine/recompute.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "engine/autocast.h"
#include "engine/random_state.h"

namespace saturate {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

thread_local bool in_capture = false;

struct Held : torch::CustomClassHolder {
    explicit Held(Block held) : part(std::move(held)) {}
    Block part;
    Precision precision = Precision::fp32;
    std::optional<torch::Tensor> random;  // state of the generator before the first run
    std::vector<torch::Tensor> buffers;
};

// Repeats the random numbers of the first run for a scope, then restores the current state.
class SameRandomNumbers {
  public:
    SameRandomNumbers(const torch::Device& device, const std::optional<torch::Tensor>& state)
        : device_(device) {
        if (!state) return;
        now_ = random_state(device);
        set_random_state(device, *state);
    }
    ~SameRandomNumbers() {
        if (now_) set_random_state(device_, *now_);
    }
    SameRandomNumbers(const SameRandomNumbers&) = delete;
    SameRandomNumbers& operator=(const SameRandomNumbers&) = delete;

  private:
    torch::Device device_;
    std::optional<torch::Tensor> now_;
};

// Disables the autocast cache: weights cast without gradients must not be reused where gradients
// are needed.
class NoCastCache {
  public:
    NoCastCache() : was_(at::autocast::is_autocast_cache_enabled()) {
        at::autocast::set_autocast_cache_enabled(false);
    }
    ~NoCastCache() { at::autocast::set_autocast_cache_enabled(was_); }
    NoCastCache(const NoCastCache&) = delete;
    NoCastCache& operator=(const NoCastCache&) = delete;

  private:
    bool was_;
};

// Restores the tensors at the end of the scope, unless the device is lost.
class Unchanged {
  public:
    explicit Unchanged(const std::vector<torch::Tensor>& tensors) : tensors_(tensors) {
        torch::NoGradGuard no_gradients;
        for (const torch::Tensor& tensor : tensors_) before_.push_back(tensor.clone());
    }
    ~Unchanged() {
        torch::NoGradGuard no_gradients;
        try {
            for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].copy_(before_[i]);
        } catch (const std::exception&) {
            // The error that ends the step is on its way already.
        }
    }
    Unchanged(const Unchanged&) = delete;
    Unchanged& operator=(const Unchanged&) = delete;

  private:
    std::vector<torch::Tensor> tensors_, before_;
};

Precision precision_now(torch::DeviceType device) {
    if (!at::autocast::is_autocast_enabled(device)) return Precision::fp32;
    return at::autocast::get_autocast_dtype(device) == torch::kHalf ? Precision::fp16
                                                                    : Precision::bf16;
}

// Runs `part` again in the backward pass, which accumulates parameter gradients as usual.
struct Recompute : torch::autograd::Function<Recompute> {
    // `anchor` needs a gradient, so that this node is in the graph even if `input` needs none.
    static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input,
                                 const torch::Tensor& anchor,
                                 const c10::intrusive_ptr<Held>& held) {
        (void)anchor;
        context->saved_data["held"] = c10::IValue::make_capsule(held);
        context->save_for_backward({input});
        torch::NoGradGuard no_gradients;
        NoCastCache no_cache;
        return held->part(input);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        auto held =
            c10::static_intrusive_pointer_cast<Held>(context->saved_data["held"].toCapsule());
        torch::Tensor kept = context->get_saved_variables()[0];
        torch::Tensor input = kept.detach().requires_grad_(kept.requires_grad());
        torch::Tensor output;
        Unchanged buffers(held->buffers);  // restored after the backward pass has used them
        {
            SameRandomNumbers random(input.device(), held->random);
            // Clears the cache of cast weights at its end: the next forward pass has newer ones.
            Autocast mixed(input.device().type(), held->precision);
            torch::AutoGradMode with_gradients(true);
            output = held->part(input);
        }
        torch::autograd::backward({output}, {gradients[0]});
        return {input.grad(), torch::Tensor(), torch::Tensor()};
    }
};

}  // namespace

InCapture::InCapture() { in_capture = true; }
InCapture::~InCapture() { in_capture = false; }

torch::Tensor recomputed(Block part, const torch::Tensor& input, RandomNumbers random,
                         std::vector<torch::Tensor> buffers) {
    if (!torch::GradMode::is_enabled()) return part(input);
    auto held = c10::make_intrusive<Held>(std::move(part));
    held->precision = precision_now(input.device().type());
    held->buffers = std::move(buffers);
    if (random == RandomNumbers::drawn) {
        TORCH_CHECK(!in_capture,
                    "gradient checkpointing would have to draw the same random numbers again, "
                    "which a graph cannot");
        held->random = random_state(input.device());
    }
    torch::Tensor anchor = torch::zeros({}, torch::TensorOptions().requires_grad(true));
    return Recompute::apply(input, anchor, held);
}

}  // namespace saturate
