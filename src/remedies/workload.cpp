// SPDX-License-Identifier: Apache-2.0
#include "remedies/workload.h"

#include <algorithm>

namespace saturate {

namespace {

// Assumptions of the estimate, in one place. None is measured on the user's machine; `--benchmark`
// is.
constexpr double kHostSecondsPerKernel =
    6e-6;                               // an eager framework needs 5 to 10 us to launch a kernel
constexpr double kCompiledShare = 0.4;  // of that when compiled (0.3 to 0.5)
constexpr double kShareOfPeak = 0.35;   // of the dense peak that small networks reach
constexpr double kShareOfBandwidth = 0.7;
constexpr double kBackwardFactor = 3;    // forward + backward against forward
constexpr double kActivationPasses = 3;  // an activation is written once and read about twice
constexpr double kContextBytes = 0.8e9;  // CUDA context, cuDNN workspaces
constexpr double kUsableShare = 0.8;
constexpr double kBytesPerParameter = 16;  // weight, gradient and two moments in fp32

double number_or(const Settings& settings, Setting setting, double otherwise) {
    return settings.number(setting).value_or(otherwise);
}

std::string kind_of(const Settings& settings) {
    if (settings.dialect().is_ours()) {
        static const char* kKnown[] = {"restoration", "locator", "classifier", "sequence",
                                       "window_cnn"};
        std::string job = settings.word(Setting::job);
        return std::ranges::find(kKnown, job) == std::end(kKnown) ? "" : job;
    }
    if (settings.dialect().name != "plain") return "";
    auto has = [&](Setting setting) { return settings.number(setting).has_value(); };
    if (has(Setting::patch_size) && has(Setting::base_channels)) return "restoration";
    if (has(Setting::hidden_size) && has(Setting::sequence_length)) return "sequence";
    if (has(Setting::window_size) && has(Setting::num_features)) return "window_cnn";
    if (has(Setting::image_size) && has(Setting::num_classes)) return "classifier";
    const Value* image = settings.get(Setting::image_size);
    if (image && image->numbers.size() == 2) return "locator";
    return "";
}

}  // namespace

double ModelShape::usual_batch_max() const {
    if (kind == "restoration") return 64;
    if (kind == "locator") return 128;
    if (kind == "classifier") return 256;
    return 512;
}

std::optional<ModelShape> shape_of(const Settings& settings) {
    ModelShape shape;
    shape.kind = kind_of(settings);
    if (shape.kind.empty()) return std::nullopt;
    shape.base_channels = number_or(settings, Setting::base_channels, 32);
    shape.num_blocks = number_or(settings, Setting::num_blocks, 4);
    shape.patch_size = number_or(settings, Setting::patch_size, 128);
    shape.hidden_size = number_or(settings, Setting::hidden_size, 64);
    shape.num_layers = number_or(settings, Setting::num_layers, 2);
    shape.num_features = number_or(settings, Setting::num_features, 16);
    shape.sequence_length = number_or(settings, Setting::sequence_length, 60);
    shape.window_size = number_or(settings, Setting::window_size, 24);
    shape.use_perceptual = settings.flag(Setting::use_perceptual).value_or(false);
    const Value* image = settings.get(Setting::image_size);
    bool is_locator = shape.kind == "locator";
    shape.image_width =
        image && !image->numbers.empty() ? image->numbers[0] : (is_locator ? 320 : 128);
    shape.image_height =
        image && !image->numbers.empty() ? image->numbers.back() : (is_locator ? 160 : 128);
    return shape;
}

Workload estimate(const ModelShape& shape) {
    double pixels = shape.image_width * shape.image_height;
    if (shape.kind == "restoration") {
        double patch = shape.patch_size * shape.patch_size, channels = shape.base_channels;
        double convolutions = 2 * shape.num_blocks + 2;
        Workload out{.forward_flops = patch * convolutions * 18 * channels * channels,
                     .activation_elements = patch * channels * 2 * convolutions,
                     .kernels = convolutions * 8 + 20,
                     .parameters = convolutions * 9 * channels * channels};
        if (shape.use_perceptual) {  // VGG-16 up to its third stage, on both pictures: 185,000
                                     // products a pixel
            out.forward_flops += patch * 2 * 2 * 185e3;
            out.activation_elements += patch * 240;
            out.kernels += 7 * 2 * 4;
            out.parameters += 1.7e6;
        }
        return out;
    }
    if (shape.kind == "locator") {  // 3.5 M parameters, 0.45 GFLOP at 320 x 160; many small layers
        return {.forward_flops = pixels * 8789,
                .activation_elements = pixels * 160,
                .kernels = 2700,
                .parameters = 3.5e6};
    }
    if (shape.kind == "classifier") {  // a residual network of 18 layers: 3.6 GFLOP at 224 x 224
        double share = pixels / (224.0 * 224.0);
        return {.forward_flops = 3.6e9 * share,
                .activation_elements = 7.5e6 * share,
                .kernels = 220,
                .parameters = 11.2e6};
    }
    if (shape.kind == "sequence") {
        double gates = 4 * shape.hidden_size * (2 * shape.hidden_size + 2);
        return {
            .forward_flops = shape.sequence_length * shape.num_layers * 2 * gates,
            .activation_elements = shape.sequence_length * shape.num_layers * shape.hidden_size * 6,
            .kernels = shape.sequence_length * shape.num_layers * 6 + 40,
            .parameters = shape.num_layers * gates};
    }
    double cells = shape.window_size * shape.num_features, channels = shape.base_channels;
    return {.forward_flops = cells * 3 * 18 * channels * channels * 2,
            .activation_elements = cells * channels * 8,
            .kernels = 90,
            .parameters = 3 * 9 * channels * channels * 2 + cells * channels * 16};
}

BatchEstimate estimate_batch(const Workload& workload, const GpuFacts& gpu, Precision precision,
                             bool compiled) {
    bool half = precision != Precision::fp32;
    double bytes = half ? 2 : 4;
    double peak = gpu.fp32_tflops;
    if (half)
        peak = (precision == Precision::bf16 ? gpu.bf16_tflops : gpu.fp16_tflops)
                   .value_or(gpu.fp32_tflops);
    double fixed = workload.kernels * kHostSecondsPerKernel * (compiled ? kCompiledShare : 1);
    double compute = kBackwardFactor * workload.forward_flops / (peak * 1e12 * kShareOfPeak);
    double traffic = kBackwardFactor * kActivationPasses * workload.activation_elements * bytes /
                     (gpu.bandwidth_gbs * 1e9 * kShareOfBandwidth);
    double per_sample = std::max(compute, traffic);
    // Gradients of activations live beside them for a while: half as much again.
    double sample_bytes = workload.activation_elements * bytes * 1.5;
    double room = static_cast<double>(gpu.memory_bytes) * kUsableShare - kContextBytes -
                  workload.parameters * kBytesPerParameter;
    return {.fills = 9 * fixed / per_sample,
            .fits = std::max(0.0, room / sample_bytes),
            .sample_bytes = sample_bytes};
}

}  // namespace saturate
