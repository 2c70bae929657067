// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "remedies/rules.h"

namespace saturate {

using enum Setting;

namespace {

void grow(Advisor& a, Setting setting, double wanted, double& shape_value) {
    auto now = a.settings.number(setting);
    if (!now || *now >= wanted) return;
    a.want(setting, wanted,
           {.reason = fmt::format("the {} has room and arithmetic for it; this is another model",
                                  a.target.gpu->name),
            .effect =
                fmt::format("{:.1f} times as large; compare quality, not speed", wanted / *now)});
    if (a.number(setting) == wanted) shape_value = wanted;
}

}  // namespace

void advise_model(Advisor& a) {
    if (!a.target.gpu || !a.shape) return;
    double gigabytes = static_cast<double>(a.target.gpu->memory_bytes) / 1e9;
    double steps = std::clamp(std::round(gigabytes / 8) + 1, 2.0,
                              4.0);  // 8 GB: 2, 12-16 GB: 3, 24 GB and more: 4
    if (a.shape->kind == "restoration") {
        grow(a, base_channels, 32 * steps, a.shape->base_channels);
        grow(a, num_blocks, steps == 2 ? 6 : steps == 3 ? 8 : 12, a.shape->num_blocks);
        grow(a, patch_size, 64 * steps, a.shape->patch_size);
        if (steps >= 3 && a.settings.flag(use_perceptual) == false) {
            a.want(use_perceptual, true,
                   {.reason = "the card has time for a second network that judges the picture; "
                              "this is another training goal",
                    .effect = "sharper pictures in most write-ups; compare quality, not speed"});
            a.shape->use_perceptual = a.flag(use_perceptual).value_or(false);
        }
    }
    if (a.shape->kind == "sequence")
        grow(a, hidden_size, gigabytes >= 40 ? 256 : 128, a.shape->hidden_size);
}

Precision best_precision(const Target& target) {
    if (target.gpu) return target.gpu->best_precision;
    return target.cpu_has_bf16 ? Precision::bf16 : Precision::fp32;
}

namespace {

std::string precision_effect(const Target& target, Precision precision) {
    if (!target.gpu) return "less memory traffic";
    auto rate = precision == Precision::bf16 ? target.gpu->bf16_tflops : target.gpu->fp16_tflops;
    if (!rate) return "";
    return fmt::format(
        "matrix work up to {:.1f} times ({:g} against {:g} TFLOPS), activations half the memory",
        *rate / target.gpu->fp32_tflops, *rate, target.gpu->fp32_tflops);
}

}  // namespace

void advise_precision(Advisor& a) {
    Precision best = best_precision(a.target);
    std::optional<PrecisionWish> wish = a.settings.precision();
    const Value* value = a.settings.get(precision);
    std::string device = a.target.gpu ? a.target.gpu->name : "this CPU";
    if (best == Precision::fp32) {
        if (wish && wish->on && value) {
            a.warn(*value, fmt::format("{} has no hardware for it: slower than fp32", device),
                   fmt::format("{}: {}", value->path.back(), "off"));
            a.want_precision(
                best,
                {.reason = fmt::format("{} computes half precision slower than fp32", device),
                 .effect = a.target.gpu
                               ? ""
                               : "bf16 without hardware was 4 to 10 times slower where measured"});
        }
        return;
    }
    if (wish && wish->on && wish->type && *wish->type != best && value) {
        if (*wish->type == Precision::bf16) {
            a.warn(*value, fmt::format("bf16 is emulated on {}", device),
                   fmt::format("{}: fp16", value->path.back()));
        } else if (*wish->type == Precision::fp16) {
            a.note(fmt::format(
                "{}: fp16 left as it is; bf16 is as fast on {} and needs no gradient scaler",
                path_text(value->path), device));
            return;
        }
    }
    if (value && !value->left_alone && value->convention == Convention::word &&
        value->flag == true && !value->precision) {
        a.warn(*value,
               fmt::format("{} is a truth value; a loop that compares it with the word 'bf16' "
                           "never turns mixed precision on",
                           quoted(value->text)),
               fmt::format("{}: {}", value->path.back(), precision_name(best)));
    }
    std::string scaler = best == Precision::fp16 ? "; needs a gradient scaler" : "";
    a.want_precision(
        best, {.reason = fmt::format("{} has fast {}{}", device, precision_name(best), scaler),
               .effect = precision_effect(a.target, best)});
}

void advise_tf32(Advisor& a) {
    const Value* value = a.settings.get(tf32);
    if (a.target.gpu && a.target.gpu->has_tf32) {
        double ratio = a.target.gpu->tf32_tflops.value_or(a.target.gpu->fp32_tflops) /
                       a.target.gpu->fp32_tflops;
        std::string effect = ratio > 1.05
                                 ? fmt::format("fp32 matrix work up to {:.1f} times", ratio)
                                 : "fp32 matrix work on tensor cores, no faster by the data sheet";
        a.want(tf32, true,
               {.reason = "what stays fp32 may use the tensor cores", .effect = effect});
    } else if (value && value->flag == true) {
        a.warn(*value,
               fmt::format("has no effect: {} has no TF32",
                           a.target.gpu ? a.target.gpu->name : "the CPU"),
               fmt::format("{}: false", value->path.back()));
    }
}

void advise_layout(Advisor& a) {
    bool convolutional =
        a.shape ? a.shape->has_convolutions : a.settings.get(channels_last) != nullptr;
    if (!a.target.gpu || !convolutional || best_precision(a.target) == Precision::fp32) return;
    a.want(channels_last, true,
           {.reason = "tensor cores read convolutions pixel by pixel; kept on trial",
            .effect = "0.85 to 1.4 times, by network: measure it"});
}

void advise_compile(Advisor& a) {
    const Value* value = a.settings.get(compile);
    // Triton, behind torch.compile, begins at capability 7.0; AMD cards have none to compare.
    bool can = a.target.gpu &&
               (!a.target.gpu->capability || *a.target.gpu->capability >= Capability{7, 0});
    if (can) {
        a.want(compile, true,
               {.reason = "fewer and larger kernels, less waiting for the host",
                .effect = "write-ups report 1.1 to 1.5 times; the first step takes 30 to 60 s"});
    } else if (a.target.gpu && value && value->flag == true) {
        a.warn(*value,
               fmt::format("torch.compile needs capability 7.0, {} has less", a.target.gpu->name),
               fmt::format("{}: false", value->path.back()));
        a.want(compile, false,
               {.reason = fmt::format("{} is too old for torch.compile", a.target.gpu->name),
                .effect = "no failed compilation at the start"});
    }
}

void advise_optimizer(Advisor& a) {
    bool helps = a.target.gpu || a.settings.dialect().is_ours();
    if (helps)
        a.want(fused_optimizer, true,
               {.reason = "one kernel for all parameters",
                .effect = "some hundred small kernels fewer per step"});
    a.want(set_to_none, true,
           {.reason = "no kernels that only write zeros",
            .effect = "one pass over the gradients fewer"});
}

}  // namespace saturate
