// SPDX-License-Identifier: Apache-2.0
#include "remedies/workload.h"

#include <algorithm>

#include "base/error.h"
#include "config/reference_jobs.h"

namespace saturate {

namespace {

// Assumptions of the estimate, all here. None is measured on the user's machine; `--benchmark`
// measures there.
constexpr double kHostSecondsPerKernel =
    6e-6;                               // an eager framework needs 5 to 10 us to launch a kernel
constexpr double kCompiledShare = 0.4;  // share of that time if compiled (0.3 to 0.5)
constexpr double kShareOfPeak = 0.35;   // small networks reach this share of the dense peak
constexpr double kShareOfBandwidth = 0.7;
constexpr double kBackwardFactor = 3;    // forward and backward over forward
constexpr double kActivationPasses = 3;  // an activation is written once and read about twice
constexpr double kContextBytes = 0.8e9;  // CUDA context, cuDNN workspaces
constexpr double kUsableShare = 0.8;
constexpr double kBytesPerParameter = 16;  // weight, gradient and two moments in fp32

double number_or(const Settings& settings, Setting setting, double otherwise) {
    return settings.number(setting).value_or(otherwise);
}

// The job whose model a file describes: by name, or by settings that only this job has.
const ReferenceJob* job_of(const Settings& settings) {
    if (settings.dialect().is_ours()) return find_reference_job(settings.word(Setting::job));
    if (settings.dialect().name != "plain") return nullptr;
    const ReferenceJob* best = nullptr;
    for (const ReferenceJob& job : reference_job_table()) {
        if (job.told_by.empty()) continue;
        bool all = std::ranges::all_of(
            job.told_by, [&](Setting setting) { return settings.number(setting).has_value(); });
        if (!all || settings.get(job.told_by.front())->numbers.size() < job.told_by_numbers)
            continue;
        if (!best || job.told_by.size() > best->told_by.size()) best = &job;
    }
    return best;
}

}  // namespace

std::optional<ModelShape> shape_of(const Settings& settings) {
    ModelShape shape;
    const ReferenceJob* job = job_of(settings);
    if (!job || !job->estimate) return std::nullopt;
    shape.kind = job->name;
    shape.has_convolutions = job->has_convolutions;
    shape.usual_batch_max = job->usual_batch_max;
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
    bool has_size = image && !image->numbers.empty();
    shape.image_width = has_size ? image->numbers[0] : job->picture.width;
    shape.image_height = has_size ? image->numbers.back() : job->picture.height;
    return shape;
}

Workload estimate(const ModelShape& shape) {
    const ReferenceJob* job = find_reference_job(shape.kind);
    SATURATE_CHECK(job && job->estimate, "a shape is of a job whose cost is known");
    return job->estimate(shape);
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
    // Gradients of activations exist next to them for a while: half as much again.
    double sample_bytes = workload.activation_elements * bytes * 1.5;
    double room = static_cast<double>(gpu.memory_bytes) * kUsableShare - kContextBytes -
                  workload.parameters * kBytesPerParameter;
    return {.fills = 9 * fixed / per_sample,
            .fits = std::max(0.0, room / sample_bytes),
            .sample_bytes = sample_bytes};
}

}  // namespace saturate
