// SPDX-License-Identifier: Apache-2.0
#include "engine/sim_count.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <string_view>

#include "engine/cpu_allocator.h"

namespace saturate {

namespace {

struct Counted {
    std::string name;
    double flops = 0;
    double bytes = 0;
    double in_turn = 1;
    bool is_leaf = true;
};

// The calls of one run, in order. Locked because the backward pass has its own thread; the run is
// not timed.
struct Counter {
    std::mutex mutex;
    std::vector<Counted> calls;
};
Counter* active_counter = nullptr;

struct Open : at::ObserverContext {
    std::size_t call = 0;
    Open* parent = nullptr;
    bool is_whole = false;       // this call or one around it
    std::vector<at::Tensor> in;  // taken at the start: the call may consume its inputs
};
thread_local Open* innermost = nullptr;

void add_tensors(const c10::IValue& value, std::vector<at::Tensor>& out) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) out.push_back(value.toTensor());
    } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) {
            if (tensor.defined()) out.push_back(tensor);
        }
    }
}

double elements(const at::Tensor& tensor) { return static_cast<double>(tensor.numel()); }

// As if all numbers were fp32: the model applies what reduced precision saves.
double bytes_of(const at::Tensor& tensor) {
    return tensor.is_floating_point() ? 4 * elements(tensor) : static_cast<double>(tensor.nbytes());
}

// Operations of matrix products, convolutions and recurrent layers, otherwise 0; the caller then
// counts one per element written.
double product_flops(std::string_view name, const std::vector<at::Tensor>& in,
                     const std::vector<at::Tensor>& out) {
    auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    if (has("convolution_backward") && in.size() >= 3) {
        // Gradients of input and weights, each as much work as the forward pass. The first layer
        // has no input gradient; the bias gradient is not a product.
        double per_output =
            elements(in[2]) / std::max<double>(1, static_cast<double>(in[2].size(0)));
        auto gradients =
            std::ranges::count_if(out, [](const at::Tensor& tensor) { return tensor.dim() >= 3; });
        return 2 * static_cast<double>(gradients) * elements(in[0]) * per_output;
    }
    if (has("conv") && in.size() >= 2 && !out.empty() && in[1].dim() >= 3) {
        double per_output =
            elements(in[1]) / std::max<double>(1, static_cast<double>(in[1].size(0)));
        return 2 * elements(out[0]) * per_output;
    }
    // The last two matrices are the factors; addmm and baddbmm have the summand before them.
    if ((has("mm") || has("linear") || has("matmul")) && in.size() >= 2 && !out.empty()) {
        const at::Tensor& left = has("addmm") || has("baddbmm") ? in[in.size() - 2] : in[0];
        double inner = left.dim() > 0 ? static_cast<double>(left.size(-1)) : 1;
        return 2 * elements(out[0]) * inner;
    }
    if (has("rnn_layer") && in.size() >= 3 && in[0].dim() == 3) {
        double steps = static_cast<double>(in[0].size(0) * in[0].size(1));
        return (has("backward") ? 4 : 2) * steps * (elements(in[1]) + elements(in[2]));
    }
    return 0;
}

void measure(Counted& call, const std::vector<at::Tensor>& in, const at::RecordFunction& function) {
    std::vector<at::Tensor> out;
    for (const c10::IValue& value : function.outputs()) add_tensors(value, out);
    double written = 0;
    for (const at::Tensor& tensor : in) call.bytes += bytes_of(tensor);
    // A copy does not read what it overwrites.
    if (call.name == "aten::copy_" && !in.empty()) call.bytes -= bytes_of(in[0]);
    for (const at::Tensor& tensor : out) {
        call.bytes += bytes_of(tensor);
        written += elements(tensor);
    }
    call.flops = product_flops(call.name, in, out);
    // A recurrent layer works through its sequence step by step; backward has
    // two products per step.
    if (call.name.find("rnn_layer") != std::string::npos && !in.empty() && in[0].dim() == 3)
        call.in_turn = static_cast<double>(in[0].size(0)) *
                       (call.name.find("backward") != std::string::npos ? 2 : 1);
    if (call.flops == 0) call.flops = written;
}

// True for calls that only view memory differently: no kernel on a GPU.
bool is_free(std::string_view name) {
    constexpr std::string_view kViews[] = {"view",
                                           "reshape",
                                           "expand",
                                           "permute",
                                           "transpose",
                                           "aten::t",
                                           "slice",
                                           "select",
                                           "squeeze",
                                           "as_strided",
                                           "empty",
                                           "detach",
                                           "alias",
                                           "size",
                                           "stride",
                                           "is_",
                                           "resize_",
                                           "set_",
                                           "narrow",
                                           "split",
                                           "chunk",
                                           "unbind",
                                           "_to_copy",
                                           "lift",
                                           "resolve_conj",
                                           "resolve_neg",
                                           "contiguous",
                                           "result_type",
                                           "numel",
                                           "item",
                                           "_local_scalar_dense"};
    if (!name.starts_with("aten::")) return true;  // autograd's own frames around the calls
    return std::ranges::any_of(
        kViews, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

// True for calls that are one kernel on a GPU, or a few that act as one, whatever
// the CPU calls inside.
bool is_whole(std::string_view name) {
    auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    return has("mkldnn_") || has("slow_conv") || has("convolution_backward") ||
           has("native_batch_norm") || has("rnn_layer") || has("_fused_") || name == "aten::mm" ||
           name == "aten::addmm" || name == "aten::bmm" || name == "aten::baddbmm";
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
    auto open = std::make_unique<Open>();
    open->parent = innermost;
    for (const c10::IValue& value : function.inputs()) add_tensors(value, open->in);
    {
        std::string_view name = function.name();
        bool is_part = innermost && innermost->is_whole;
        bool counts = !is_part && !is_free(name);
        open->is_whole = is_part || is_whole(name);
        std::lock_guard lock(active_counter->mutex);
        // A call with counted calls inside is no leaf: its cost is theirs. Views do not count.
        for (Open* outer = innermost; counts && outer; outer = outer->parent)
            active_counter->calls[outer->call].is_leaf = false;
        open->call = active_counter->calls.size();
        active_counter->calls.push_back({.name = std::string(name), .is_leaf = counts});
    }
    innermost = open.get();
    return open;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
    auto* open = static_cast<Open*>(context);
    innermost = open->parent;
    std::lock_guard lock(active_counter->mutex);
    measure(active_counter->calls[open->call], open->in, function);
}

OpClass class_of(std::string_view name) {
    auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    if (has("_fused_adam") || has("_fused_sgd") || has("_foreach")) return OpClass::optimizer;
    if (has("rnn_layer") || has("lstm") || has("gru")) return OpClass::recurrent;
    if (has("conv")) return OpClass::convolution;
    if (has("mm") || has("linear") || has("matmul")) return OpClass::matrix;
    return OpClass::elementwise;
}

std::vector<Counted> counted(const std::function<void()>& run) {
    Counter counter;
    active_counter = &counter;
    at::CallbackHandle handle = at::addGlobalCallback(at::RecordFunctionCallback(on_start, on_end)
                                                          .needsInputs(true)
                                                          .needsOutputs(true)
                                                          .scopes({at::RecordScope::FUNCTION}));
    try {
        run();
    } catch (...) {
        at::removeCallback(handle);
        throw;
    }
    at::removeCallback(handle);
    std::erase_if(counter.calls, [](const Counted& call) { return !call.is_leaf; });
    return std::move(counter.calls);
}

}  // namespace

StepCost count_step(const std::function<void(std::int64_t)>& run, std::int64_t samples_most) {
    std::int64_t small = std::min<std::int64_t>(2, samples_most),
                 large = std::min<std::int64_t>(4, samples_most);
    run(small);  // creates the optimizer's state
    auto peak_of = [&](std::int64_t samples, std::vector<Counted>& calls) {
        reset_cpu_peak();
        std::int64_t before = cpu_memory().used_bytes;
        calls = counted([&] { run(samples); });
        return static_cast<double>(cpu_memory().peak_bytes - before);
    };
    std::vector<Counted> a, b;
    double peak_a = peak_of(small, a), peak_b = peak_of(large, b);
    double step = std::max<double>(1, static_cast<double>(large - small));

    StepCost cost;
    // Both runs should make the same calls. If they do not, use the larger run alone.
    bool same = a.size() == b.size() && large > small;
    for (std::size_t i = 0; i < b.size(); ++i) {
        OpCost op{.name = b[i].name, .kind = class_of(b[i].name), .in_turn = b[i].in_turn};
        double flops =
            same ? (b[i].flops - a[i].flops) / step : b[i].flops / static_cast<double>(large);
        double bytes =
            same ? (b[i].bytes - a[i].bytes) / step : b[i].bytes / static_cast<double>(large);
        op.flops_per_sample = std::max(0.0, flops);
        op.bytes_per_sample = std::max(0.0, bytes);
        op.flops_fixed =
            std::max(0.0, b[i].flops - op.flops_per_sample * static_cast<double>(large));
        op.bytes_fixed =
            std::max(0.0, b[i].bytes - op.bytes_per_sample * static_cast<double>(large));
        cost.ops.push_back(std::move(op));
    }
    cost.activation_bytes_per_sample = std::max(0.0, (peak_b - peak_a) / step);
    cost.activation_bytes_fixed =
        std::max(0.0, peak_b - cost.activation_bytes_per_sample * static_cast<double>(large));
    cost.model_bytes = static_cast<double>(cpu_memory().used_bytes);
    return cost;
}

}  // namespace saturate
