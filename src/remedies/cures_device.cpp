// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "remedies/cures.h"

namespace saturate {

namespace {

constexpr double kSmallStepSeconds = 0.02;

std::string precision_expect(const Facts& facts, Precision precision) {
    if (!facts.gpu) return "less memory traffic";
    auto rate = precision == Precision::bf16 ? facts.gpu->bf16_tflops : facts.gpu->fp16_tflops;
    if (!rate) return "";
    return fmt::format(
        "matrix work up to {:.1f} times ({:g} against {:g} TFLOPS), activations half the memory",
        *rate / facts.gpu->fp32_tflops, *rate, facts.gpu->fp32_tflops);
}

}  // namespace

static Proposal cure_precision(const Facts& facts) {
    Precision best = facts.best_precision();
    std::string now = facts.value("precision");
    bool is_on = now == "bf16" || now == "fp16" || now == "true";
    if (best == Precision::fp32) {
        if (!is_on) return {.reason = facts.device() + " has no hardware for half precision"};
        return {.value = "none",
                .reason = facts.device() + " computes half precision slower than fp32",
                .expect = facts.on_cpu
                              ? "bf16 without hardware was 4 to 10 times slower where measured"
                              : "",
                .wrong_now = facts.device() + " has no hardware for it: slower than fp32"};
    }
    if (now == "true") return {.reason = "mixed precision is on; the program chooses its type"};
    std::string name(precision_name(best));
    if (now == name) return {.reason = name + " it is already"};
    if (now == "fp16")
        return {.reason = fmt::format("fp16 stays: bf16 is as fast on {} and needs no gradient "
                                      "scaler",
                                      facts.device())};
    Proposal out{.value = name,
                 .reason = fmt::format("{} has fast {}{}", facts.device(), name,
                                       best == Precision::fp16 ? "; needs a gradient scaler" : ""),
                 .expect = precision_expect(facts, best)};
    if (now == "bf16") out.wrong_now = fmt::format("bf16 is emulated on {}", facts.device());
    return out;
}

static Proposal cure_tf32(const Facts& facts) {
    if (!facts.has_tf32) {
        Proposal out{.reason =
                         facts.on_cpu ? "the CPU has no TF32" : facts.device() + " has no TF32"};
        if (facts.is_on("tf32"))
            out.wrong_now = fmt::format("has no effect: {} has no TF32",
                                        facts.on_cpu ? "the CPU" : facts.device());
        return out;
    }
    if (facts.is_on("tf32")) return {.reason = "TF32 is already on"};
    std::string precision = facts.value("precision");
    if (facts.is_measuring && (precision == "bf16" || precision == "fp16" || precision == "true"))
        return {.reason = "in mixed precision hardly any fp32 product is left"};
    Proposal out{.value = "true", .reason = "the remaining fp32 work may use the tensor cores"};
    if (facts.gpu) {
        double ratio =
            facts.gpu->tf32_tflops.value_or(facts.gpu->fp32_tflops) / facts.gpu->fp32_tflops;
        out.expect = ratio > 1.05 ? fmt::format("fp32 matrix work up to {:.1f} times", ratio)
                                  : "fp32 matrix work on tensor cores, no faster by the data sheet";
    }
    return out;
}

static Proposal cure_channels_last(const Facts& facts) {
    if (!facts.has_images) return {.reason = "no convolutions are known"};
    bool is_on = facts.is_on("channels_last");
    if (facts.is_measuring)
        return {.value = is_on ? "false" : "true",
                .reason = "only a trial shows which layout convolutions prefer"};
    if (facts.on_cpu) return {.reason = "on a CPU only a measurement tells"};
    if (facts.best_precision() == Precision::fp32)
        return {.reason = facts.device() + " has no tensor cores that would prefer it"};
    if (is_on) return {.reason = "it is already on"};
    return {.value = "true",
            .reason = "tensor cores read images pixel by pixel; keep it only if it is faster"};
}

static Proposal cure_cudnn_benchmark(const Facts& facts) {
    if (facts.on_cpu) return {.reason = "cuDNN runs on GPUs only"};
    if (facts.is_on("cudnn_benchmark")) return {.reason = "it is already on"};
    if (facts.is_on("deterministic"))
        return {.reason = "the configuration asks for deterministic algorithms"};
    if (!facts.has_images) return {.reason = "no convolutions are known"};
    if (!facts.is_measuring)
        return {.reason = "only pays off with constant shapes: needs a measurement"};
    return {.value = "true", .reason = "convolutions choose their algorithm by timing"};
}

static Proposal cure_compile(const Facts& facts) {
    bool is_on = facts.is_on("compile");
    if (!facts.can_compile && !facts.on_cpu && is_on)
        return {.value = "false",
                .reason = facts.device() + " is too old for torch.compile",
                .expect = "no failed compilation at the start",
                .wrong_now =
                    fmt::format("torch.compile needs capability 7.0, {} has less", facts.device())};
    if (!facts.can_compile) return {.reason = "torch.compile does not work here"};
    if (is_on) return {.reason = "it is already on"};
    if (facts.on_cpu && !facts.is_measuring) return {.reason = "on a CPU only a measurement tells"};
    return {.value = "true", .reason = "fewer and larger kernels, less waiting for the host"};
}

static Proposal cure_fused_optimizer(const Facts& facts) {
    if (facts.is_on("fused_optimizer")) return {.reason = "it is already on"};
    if (facts.on_cpu && !facts.in_engine && !facts.is_measuring)
        return {.reason = "on a CPU only a measurement tells"};
    return {.value = "true", .reason = "one kernel updates all parameters"};
}

static Proposal cure_foreach(const Facts& facts) {
    if (facts.on_cpu) return {.reason = "it groups GPU kernels"};
    if (!facts.is_measuring)
        return {.reason = "where the optimizer has a fused form, that is one kernel"};
    return {.value = "true", .reason = "a few kernels update all parameters"};
}

static Proposal cure_set_to_none(const Facts& facts) {
    if (facts.is_on("set_to_none")) return {.reason = "it is already on"};
    return {.value = "true", .reason = "no kernels that only write zeros"};
}

static Proposal cure_gradient_checkpointing(const Facts& facts) {
    if (!facts.is_on("gradient_checkpointing")) return {.reason = "activations are already kept"};
    if (!facts.is_measuring)
        return {.reason = "only a measurement tells whether activations fit into memory"};
    return {.value = "false",
            .reason = "activations are kept where they fit, instead of computed again"};
}

static Proposal cure_threads(const Facts& facts) {
    if (!facts.on_cpu) return {.reason = "the model computes on the GPU"};
    double threads = facts.number("threads").value_or(facts.cores);
    if (facts.cores > 0 && threads > facts.cores)
        return {.value = std::to_string(facts.cores),
                .reason =
                    fmt::format("{:.0f} threads share {} core{}: they only get in each other's way",
                                threads, facts.cores, facts.cores == 1 ? "" : "s")};
    if (!facts.is_measuring || facts.cores < 2)
        return {.reason = "only a measurement tells how many threads pay off"};
    double workers = facts.number("num_workers").value_or(0);
    // The model leaves enough cores to the loader.
    if (facts.loader) {
        if (workers > 0 && workers + threads > facts.cores && threads > 1)
            return {.value = fmt::format("{:.0f}", std::max(1.0, facts.cores - workers)),
                    .reason = "workers and model share the cores"};
        return {.reason = "workers and model have a core each"};
    }
    if (facts.step_seconds > 0 && facts.step_seconds < kSmallStepSeconds && threads != 1)
        return {.value = "1", .reason = "small steps lose more than they gain by sharing work"};
    return {.reason = "steps are long enough to share their work"};
}

static Proposal cure_attention(const Facts&) {
    return {.value = "sdpa", .reason = "one kernel instead of softmax between two products"};
}

static Proposal cure_expandable_segments(const Facts& facts) {
    if (facts.on_cpu) return {.reason = "it belongs to the GPU's allocator"};
    return {.value = "true", .reason = "memory grows in place instead of being allocated again"};
}

static Proposal cure_bucket_size(const Facts& facts) {
    std::string usual(info_of(Setting::bucket_size).default_text);
    if (facts.in_engine && !facts.number("bucket_size"))
        return {.reason = "the engine's own size is in effect"};
    if (facts.number("bucket_size").value_or(0) >= parse_number(usual).value_or(0))
        return {.reason = "buckets are large enough"};
    return {.value = usual, .reason = "fewer, larger messages between ranks"};
}

static Proposal cure_gradient_compression(const Facts& facts) {
    if (facts.value("gradient_compression") == "bf16") return {.reason = "it is already on"};
    if (!facts.is_measuring)
        return {.reason = "rounds the gradients: only a measurement tells whether it pays off"};
    return {.value = "bf16", .reason = "half the bytes between ranks"};
}

namespace {

using enum Setting;
using Set = ShimWay::Set;
using Kind = SourceWay::Kind;

constexpr Remedy kDevice[] = {
    {.name = "precision",
     .setting = precision,
     .causes = "F18",
     .relief = Relief::device,
     .is_measured = true,
     .shim = {"autocast", Set::by_name},
     .source = {Kind::around_forward, "", "with torch.autocast(\"{device}\", torch.{value}):"},
     .expect = "faster matrix work, activations half the memory",
     .propose = cure_precision},
    {.name = "tf32",
     .setting = tf32,
     .causes = "F18",
     .relief = Relief::device,
     .for_gpu = true,
     .is_measured = true,
     .shim = {"tf32", Set::numerics},
     .source = {Kind::statement, "", "torch.set_float32_matmul_precision(\"high\")"},
     .expect = "fp32 matrix work on tensor cores",
     .propose = cure_tf32},
    {.name = "channels_last",
     .setting = channels_last,
     .causes = "F19",
     .relief = Relief::device,
     .is_measured = true,
     .pair = "batch_size",
     .shim = {"channels_last", Set::by_name},
     .source = {Kind::after_model, "", "{model} = {model}.to(memory_format=torch.channels_last)"},
     .expect = "0.85 to 1.4 times, by network: measure it",
     .propose = cure_channels_last},
    {.name = "cudnn_benchmark",
     .setting = cudnn_benchmark,
     .causes = "F25",
     .relief = Relief::device,
     .for_gpu = true,
     .is_measured = true,
     .shim = {"cudnn_benchmark", Set::numerics},
     .source = {Kind::statement, "", "torch.backends.cudnn.benchmark = True"},
     .expect = "faster convolutions where shapes do not change",
     .propose = cure_cudnn_benchmark},
    {.name = "gradient_checkpointing",
     .setting = gradient_checkpointing,
     .causes = "F31",
     .relief = Relief::device,
     .is_measured = true,
     .source = {Kind::declared},
     .expect = "a quarter less work, more memory",
     .propose = cure_gradient_checkpointing},
    {.name = "compile",
     .setting = compile,
     .causes = "F10 F12 F27",
     .relief = Relief::host,
     .is_measured = true,
     .shim = {"compile", Set::by_name},
     .source = {Kind::after_model, "", "{model} = torch.compile({model})"},
     .expect = "others report 1.1 to 1.5 times the speed; the first step takes 30 to 60 s",
     .propose = cure_compile},
    {.name = "fused_optimizer",
     .setting = fused_optimizer,
     .causes = "F13 F12",
     .relief = Relief::unknown,
     .for_gpu = true,
     .is_measured = true,
     .shim = {"fused", Set::numerics},
     .source = {Kind::keyword, "optimizer", "fused"},
     .expect = "a few hundred fewer small kernels per step",
     .propose = cure_fused_optimizer},
    {.name = "foreach",
     .setting = std::nullopt,
     .own_level = Level::numerics,
     .causes = "F13",
     .relief = Relief::unknown,
     .for_gpu = true,
     .shim = {"foreach", Set::by_name},
     .source = {Kind::keyword, "optimizer", "foreach"},
     .expect = "a few hundred fewer small kernels per step, at the cost of memory",
     .propose = cure_foreach},
    {.name = "set_to_none",
     .setting = set_to_none,
     .causes = "F14",
     .relief = Relief::unknown,
     .is_measured = true,
     .shim = {"set_to_none", Set::safe},
     .source = {Kind::keyword, "zero_grad", "set_to_none"},
     .expect = "one fewer pass over the gradients",
     .propose = cure_set_to_none},
    {.name = "threads",
     .setting = threads,
     .causes = "F30 F01",
     .relief = Relief::unknown,
     .is_measured = true,
     .shim = {"threads", Set::safe, true, true},
     .source = {Kind::statement, "", "torch.set_num_threads({})"},
     .expect = "less switching between threads",
     .propose = cure_threads},
    {.name = "attention",
     .setting = std::nullopt,
     .own_level = Level::numerics,
     .causes = "F20",
     .relief = Relief::device,
     .source = {Kind::by_hand, "", "torch.nn.functional.scaled_dot_product_attention"},
     .expect = "one kernel instead of three, and no score matrix in memory",
     .propose = cure_attention},
    {.name = "expandable_segments",
     .setting = std::nullopt,
     .own_level = Level::safe,
     .causes = "F09",
     .relief = Relief::host,
     .for_gpu = true,
     .source = {Kind::environment, "", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
     .expect = "fewer calls of cudaMalloc inside the steps",
     .propose = cure_expandable_segments},
    {.name = "bucket_size",
     .setting = bucket_size,
     .causes = "F16",
     .relief = Relief::host,
     .expect = "less waiting for many small messages",
     .propose = cure_bucket_size},
    {.name = "gradient_compression",
     .setting = gradient_compression,
     .causes = "F15",
     .relief = Relief::host,
     .expect = "half the bytes between ranks",
     .propose = cure_gradient_compression},
};

}  // namespace

std::span<const Remedy> device_remedies() { return kDevice; }

}  // namespace saturate
