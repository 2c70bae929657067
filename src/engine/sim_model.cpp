// SPDX-License-Identifier: Apache-2.0
#include "engine/sim_model.h"

#include <algorithm>

namespace saturate {

namespace {

// Shares of the peaks that a large operator of a class reaches, and its minimum time.
struct ClassRates {
    double of_peak;       // of the arithmetic peak in its precision
    double of_bandwidth;  // of the memory's
    double least_seconds;
};

// Sources: seven public profiler traces with shapes, on V100, A100, H100 and MI300X
// (bench/sim_check; docs/tune-internals.md has the errors). Measured over operators above 20 us:
// products reach 0.64 to 0.85 of the peak, thin ones only 0.27 to 0.36 of the bandwidth, and none
// takes under 6 us; fp32 convolutions reach 0.74 of the peak (Winograd saves operations) and 0.39
// to 0.58 of the bandwidth; elementwise operators, norms and softmax, which read more than once,
// 0.26 to 0.69 of the bandwidth. For convolutions on tensor cores there is only one trace, of an
// MI300X in its unfavourable layout, at 0.15 of the peak: 0.40 lies between that and products.
// There is no trace for recurrent layers (small dependent products, each at least a product's
// minimum time) and fused optimizers: those rows are estimates.
constexpr double kShortestKernel = 2e-6;
constexpr ClassRates rates_of(OpClass kind, bool tensor_cores) {
    switch (kind) {
        case OpClass::matrix:
            return {0.70, 0.30, 6e-6};
        case OpClass::convolution:
            return {tensor_cores ? 0.40 : 0.75, 0.50, 6e-6};
        case OpClass::recurrent:
            return {0.15, 0.60, 6e-6};
        case OpClass::elementwise:
            return {0.50, 0.60, kShortestKernel};
        case OpClass::optimizer:
            return {0.50, 0.80, kShortestKernel};
    }
    return {0.5, 0.6, kShortestKernel};
}
constexpr double kWrongLayout = 0.75;  // convolutions on tensor cores in NCHW pay transposes: 16 %
                                       // of kernel time in a public ResNet18 trace
constexpr double kLaunchSeconds = 8e-6;  // host per operator in C++: below the quickest quarter of
                                         // Python's launches in public traces (20 us)
constexpr double kGraphSeconds = 15e-6;  // host per captured step
constexpr double kContextBytes = 500e6;  // CUDA context and libraries
constexpr double kSlack = 1.05;          // the allocator's rounding
constexpr double kIdleShareOfPower = 122.0 / 700.0;  // an H100 with an open context
constexpr double kPinnedBytesPerSecond = 20e9;       // PCIe 4 x16, as measured in public
constexpr double kPageableBytesPerSecond = 3.7e9;    // a public RTX 2080 Ti trace

RateKind rate_kind(const SimSettings& settings) {
    if (settings.precision == Precision::bf16) return RateKind::bf16;
    if (settings.precision == Precision::fp16) return RateKind::fp16;
    return settings.tf32 ? RateKind::tf32 : RateKind::fp32;
}

// Measured FLOP/s of a class of operator; nothing if it was not measured on this card.
std::optional<double> measured_flops(const MeasuredRates& measured, OpClass kind,
                                     const SimSettings& settings) {
    auto at = static_cast<std::size_t>(rate_kind(settings));
    if (kind == OpClass::matrix) return measured.matrix[at];
    if (kind == OpClass::convolution) return measured.convolution[at];
    return std::nullopt;
}

double peak_flops(const GpuFacts& gpu, OpClass kind, const SimSettings& settings) {
    double fp32 = gpu.fp32_tflops;
    bool products =
        kind == OpClass::matrix || kind == OpClass::convolution || kind == OpClass::recurrent;
    if (!products) return fp32 * 1e12;
    double peak = settings.tf32 && gpu.tf32_tflops ? *gpu.tf32_tflops : fp32;
    // Types without hardware units are emulated at a quarter of fp32.
    if (settings.precision == Precision::bf16) peak = gpu.bf16_tflops.value_or(fp32 / 4);
    if (settings.precision == Precision::fp16) peak = gpu.fp16_tflops.value_or(fp32 / 4);
    return peak * 1e12;
}

}  // namespace

double StepCost::flops(double batch) const {
    double sum = 0;
    for (const OpCost& op : ops) sum += op.flops_fixed + op.flops_per_sample * batch;
    return sum;
}

SimStep simulate_step(const StepCost& cost, const GpuFacts& gpu, const SimSettings& settings,
                      double batch, const MeasuredRates& measured) {
    bool reduced = settings.precision != Precision::fp32;
    bool tensor_cores = reduced || settings.tf32;
    SimStep out;
    for (const OpCost& op : cost.ops) {
        ClassRates rates = rates_of(op.kind, tensor_cores);
        double layout = op.kind == OpClass::convolution && tensor_cores && !settings.channels_last
                            ? kWrongLayout
                            : 1;
        // Autocast halves what products and the operators after them read and write; the optimizer
        // stays in fp32.
        double width = reduced && op.kind != OpClass::optimizer ? 0.5 : 1;
        double flops = op.flops_fixed + op.flops_per_sample * batch;
        double bytes = width * (op.bytes_fixed + op.bytes_per_sample * batch);
        double rate = measured_flops(measured, op.kind, settings)
                          .value_or(peak_flops(gpu, op.kind, settings) * rates.of_peak);
        double bandwidth = gpu.bandwidth_gbs * 1e9 * rates.of_bandwidth;
        if (op.kind == OpClass::elementwise)
            bandwidth = measured.memory_bytes_per_second.value_or(bandwidth);
        // Scales a product's minimum time by the measured shortest kernel.
        double least = rates.least_seconds / kShortestKernel *
                       measured.kernel_seconds.value_or(kShortestKernel);
        out.device_seconds +=
            std::max({flops / (rate * layout), bytes / bandwidth, op.in_turn * least});
        ++out.kernels;
    }
    out.host_seconds = settings.captured
                           ? kGraphSeconds
                           : measured.launch_seconds.value_or(kLaunchSeconds) * out.kernels;
    double activations = cost.activation_bytes_fixed + cost.activation_bytes_per_sample * batch;
    out.memory_bytes =
        kContextBytes + kSlack * (cost.model_bytes + activations * (reduced ? 0.6 : 1));
    return out;
}

double simulated_power(const GpuFacts& gpu, double busy_share) {
    double idle = kIdleShareOfPower * gpu.tdp_watts;
    return idle + (gpu.tdp_watts - idle) * std::clamp(busy_share, 0.0, 1.0);
}

double simulated_copy(double bytes, bool pinned, const MeasuredRates& measured) {
    return bytes / (pinned ? measured.copy_bytes_per_second.value_or(kPinnedBytesPerSecond)
                           : kPageableBytesPerSecond);
}

}  // namespace saturate
