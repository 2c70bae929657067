// SPDX-License-Identifier: Apache-2.0
// The rules of `optimize`, one function each, in the order in which they build on each other.
#include "config/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.h"
#include "config/advisor.h"

namespace saturate {

namespace {

using enum Setting;

double power_of_two_up_to(double value) {
    return std::exp2(std::floor(std::log2(std::max(1.0, value))));
}
double power_of_two_from(double value) {
    return std::exp2(std::ceil(std::log2(std::max(1.0, value))));
}

// ---- level model: a larger model where the card has room for one
// ------------------------------------

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

void larger_model(Advisor& a) {
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

// ---- precision
// ---------------------------------------------------------------------------------------

Precision best_precision(const Target& target) {
    if (target.gpu) return target.gpu->best_precision;
    return target.cpu_has_bf16 ? Precision::bf16 : Precision::fp32;
}

std::string precision_effect(const Target& target, Precision precision) {
    if (!target.gpu) return "less memory traffic";
    auto rate = precision == Precision::bf16 ? target.gpu->bf16_tflops : target.gpu->fp16_tflops;
    if (!rate) return "";
    return fmt::format(
        "matrix work up to {:.1f} times ({:g} against {:g} TFLOPS), activations half the memory",
        *rate / target.gpu->fp32_tflops, *rate, target.gpu->fp32_tflops);
}

void mixed_precision(Advisor& a) {
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

void tensor_float(Advisor& a) {
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

// ---- kernels
// -----------------------------------------------------------------------------------------

void layout(Advisor& a) {
    bool convolutional =
        a.shape ? a.shape->is_convolutional() : a.settings.get(channels_last) != nullptr;
    if (!a.target.gpu || !convolutional || best_precision(a.target) == Precision::fp32) return;
    a.want(channels_last, true,
           {.reason = "tensor cores read convolutions pixel by pixel; kept on trial",
            .effect = "0.85 to 1.4 times, by network: measure it"});
}

void compiled(Advisor& a) {
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

void optimizer_step(Advisor& a) {
    bool helps = a.target.gpu || a.settings.dialect().is_ours();
    if (helps)
        a.want(fused_optimizer, true,
               {.reason = "one kernel for all parameters",
                .effect = "some hundred small kernels fewer per step"});
    a.want(set_to_none, true,
           {.reason = "no kernels that only write zeros",
            .effect = "one pass over the gradients fewer"});
}

// ---- loader
// ------------------------------------------------------------------------------------------

void workers(Advisor& a) {
    int cores = a.target.cores_per_process();
    double wanted = a.target.gpu ? std::clamp(cores / 2, 1, 16) : std::max(1, cores / 4);
    std::string share = a.target.gpu ? "half of" : "a quarter of";
    const Value* value = a.settings.get(num_workers);
    std::optional<double> now = a.settings.number(num_workers);
    std::string per = a.target.gpus > 1 ? fmt::format("{} cores per GPU process", cores)
                                        : fmt::format("{} cores", cores);
    if (a.target.workers) {
        a.want(num_workers, static_cast<double>(*a.target.workers),
               {.reason = "as asked for with --workers"});
    } else if (value && now && *now > cores) {
        a.warn(*value,
               fmt::format("{:.0f} workers share {}: they take time from each other and from the "
                           "training process",
                           *now, per),
               fmt::format("{}: {:.0f}", value->path.back(), wanted));
        a.want(num_workers, wanted,
               {.reason = fmt::format("more workers than the {} only queue", per),
                .effect = "less switching, less memory"});
    } else if (now.value_or(0) < wanted) {
        bool in_process = value && now == 0;
        a.want(num_workers, wanted,
               {.reason = fmt::format(
                    "{} the {}{}", share, per,
                    in_process ? "; 0 loads in the training process, the GPU waits" : ""),
                .effect = "the next batch is made while this one is computed"});
    }
}

void loader(Advisor& a) {
    const Value* prefetch = a.settings.get(prefetch_factor);
    bool has_workers = a.number(num_workers).value_or(0) > 0;
    if (prefetch && !prefetch->left_alone && a.settings.number(num_workers) == 0) {
        a.warn(*prefetch, "torch refuses it while num_workers is 0",
               "num_workers above 0, or no prefetch_factor");
        if (!has_workers) a.remove(*prefetch, {.reason = "no workers, nothing to prefetch"});
    }
    if (has_workers) {
        if (a.settings.number(prefetch_factor).value_or(0) < 2) {
            a.want(
                prefetch_factor, 4.0,
                {.reason = "a slow sample does not empty the queue", .effect = "steadier supply"});
        }
        a.want(persistent_workers, true,
               {.reason = "workers are not started anew every epoch",
                .effect = "no pause at epoch starts"});
    }
    const Value* pinned = a.settings.get(pin_memory);
    if (a.target.gpu) {
        a.want(pin_memory, true,
               {.reason = "page-locked batches are copied by the GPU itself",
                .effect = "copies at the speed of the bus, beside the computation"});
        a.want(non_blocking, true,
               {.reason = "the host goes on while a pinned batch is copied",
                .effect = "copy hidden behind computation"});
    } else if (pinned && pinned->flag == true) {
        a.warn(*pinned, "there is no GPU to pin memory for",
               fmt::format("{}: false", pinned->path.back()));
        a.want(
            pin_memory, false,
            {.reason = "no GPU: pinning only costs a copy", .effect = "one copy per batch fewer"});
    }
}

// ---- batch and learning rate
// -------------------------------------------------------------------------

double effective_batch(const Advisor& a) {
    double gpus =
        a.settings.get(global_batch_size) && !a.settings.get(batch_size) ? 1 : a.target.gpus;
    double batch = a.number(batch_size).value_or(a.number(global_batch_size).value_or(0));
    return batch * a.number(gradient_accumulation_steps).value_or(1) * gpus;
}

std::optional<double> samples_in_data(const Advisor& a) {
    return a.target.dataset_size ? a.target.dataset_size : a.settings.number(dataset_size);
}

// The smallest power of two that fills the card, within its memory, four times the present batch,
// and a data set that still gives fifty steps an epoch.
double filling_batch(const Advisor& a, const BatchEstimate& estimate, double now) {
    double most = std::min(power_of_two_up_to(estimate.fits), 4 * now);
    if (auto samples = samples_in_data(a)) most = std::min(most, power_of_two_up_to(*samples / 50));
    return std::min(power_of_two_from(estimate.fills), most);
}

void batch(Advisor& a) {
    const Value* value = a.settings.get(batch_size);
    std::optional<double> now = a.settings.number(batch_size);
    if (!now || !a.target.gpu) return;
    if (!a.shape) {
        a.note(
            fmt::format("{} stays {:.0f}: what fits depends on the model, which the file does not "
                        "show; only a measurement tells",
                        path_text(value->path), *now));
        return;
    }
    BatchEstimate estimate =
        estimate_batch(saturate::estimate(*a.shape), *a.target.gpu, best_precision(a.target),
                       a.flag(compile).value_or(false));
    const std::string& card = a.target.gpu->name;
    double accumulation = a.settings.number(gradient_accumulation_steps).value_or(1);
    if (*now > estimate.fits) {
        double fits = std::max(1.0, power_of_two_up_to(estimate.fits));
        double factor = std::ceil(*now / fits);
        bool grown = a.level == Level::model;  // then it is our own larger model that does not fit
        if (!grown)
            a.warn(*value,
                   fmt::format("about {} for activations, more than the {} has",
                               bytes_text(static_cast<std::uint64_t>(*now * estimate.sample_bytes)),
                               card),
                   fmt::format("{}: {:.0f}", value->path.back(), fits));
        a.want(batch_size, fits,
               {.reason = fmt::format("what {} holds, by estimate",
                                      bytes_text(a.target.gpu->memory_bytes)),
                .effect = "no out of memory",
                .level = Level::numerics});
        a.want(gradient_accumulation_steps, accumulation * factor,
               {.reason = "keeps the effective batch",
                .effect = "same optimisation path",
                .level = Level::numerics});
        return;
    }
    double wanted = filling_batch(a, estimate, *now);
    if (wanted <= *now) {
        bool full = estimate.fills <= *now;
        std::string why = full ? fmt::format("by estimate the {} is filled from about {:.0f}", card,
                                             std::ceil(estimate.fills))
                               : "the data set is too small for more";
        a.note(fmt::format("{} stays {:.0f}: {}", path_text(value->path), *now, why));
        return;
    }
    double factor = wanted / *now;
    std::string fills =
        estimate.fills <= wanted
            ? fmt::format("by estimate the {} is filled from about {:.0f}", card, estimate.fills)
            : fmt::format(
                  "the {} is not filled by {:.0f}; more than {:g} times wants a measurement", card,
                  *now, factor);
    bool folds = accumulation >= factor && std::fmod(accumulation, factor) == 0;
    std::string memory =
        fmt::format("about {} of {} for activations",
                    bytes_text(static_cast<std::uint64_t>(wanted * estimate.sample_bytes)),
                    bytes_text(a.target.gpu->memory_bytes));
    a.want(batch_size, wanted,
           {.reason = fills, .effect = memory, .level = folds ? Level::numerics : Level::training});
    if (folds)
        a.want(gradient_accumulation_steps, accumulation / factor,
               {.reason = "the larger batch takes over; the effective batch stays",
                .effect = "fewer, larger steps",
                .level = Level::numerics});
}

bool framework_scales_rate(const Advisor& a) {
    const std::string& name = a.settings.dialect().name;
    if (name == "ultralytics") return true;  // it accumulates up to nbs
    const Value* rate = a.settings.get(learning_rate);
    if (rate && rate->convention == Convention::self_scaling) return true;
    const Node* scales = a.document.find({"auto_scale_lr", "enable"});
    if (name == "mmengine" && scales && lower(scales->text) == "true") return true;
    const Node* world = a.document.find({"SOLVER", "REFERENCE_WORLD_SIZE"});
    return name == "detectron2" && world && world->text != "0";
}

void rate(Advisor& a) {
    auto before = a.settings.number(batch_size);
    auto rate_now = a.settings.number(learning_rate);
    if (!before || !rate_now) return;
    double accumulation = a.settings.number(gradient_accumulation_steps).value_or(1);
    double factor = effective_batch(a) / (*before * accumulation * a.target.gpus);
    if (factor == 1 || framework_scales_rate(a)) return;
    bool is_sgd = a.settings.word(optimizer).find("sgd") != std::string::npos;
    double scaled = *rate_now * (is_sgd ? factor : std::sqrt(factor));
    a.want(learning_rate, scaled,
           {.reason = fmt::format("{} rule for {} with {:g} times the batch",
                                  is_sgd ? "linear" : "square-root",
                                  a.settings.word(optimizer).empty() ? "Adam-like optimizers"
                                                                     : a.settings.word(optimizer),
                                  factor),
            .effect = "like progress per sample; warm up longer"});
}

void clipping(Advisor& a) {
    const Value* value = a.settings.get(grad_clip);
    bool raised =
        a.number(learning_rate).value_or(0) > a.settings.number(learning_rate).value_or(0);
    if (value || !raised) return;
    a.want(grad_clip, 1.0,
           {.reason = "a higher learning rate: one bad batch must not ruin the run",
            .effect = "none while gradients are short"});
}

// ---- intervals
// ---------------------------------------------------------------------------------------

void intervals(Advisor& a) {
    constexpr double kLog = 50, kEpochs = 5;
    auto log = a.settings.number(log_interval);
    if (log && *log < 10) {
        a.want(log_interval, kLog,
               {.reason = "reading the loss makes the host wait for the GPU",
                .effect = fmt::format("{:.0f} times fewer waits", kLog / *log)});
    } else if (!log && !a.settings.get(log_interval)) {
        a.want(log_interval, kLog,
               {.reason = "reading the loss makes the host wait for the GPU",
                .effect = "no wait between logs"});
    }
    auto total = a.settings.number(epochs);
    for (Setting setting : {eval_interval, checkpoint_interval}) {
        const Value* value = a.settings.get(setting);
        if (!value || value->convention != Convention::epochs || a.settings.number(setting) != 1)
            continue;
        if (total && *total < 2 * kEpochs) continue;
        a.want(setting, kEpochs,
               {.reason = setting == eval_interval ? "training stands still while it evaluates"
                                                   : "training stands still while it saves",
                .effect = setting == eval_interval
                              ? "a fifth of the pauses; early stopping reacts later"
                              : "a fifth of the pauses; up to five epochs lost in a crash"});
    }
}

// ---- contradictions
// ----------------------------------------------------------------------------------

void contradictions(Advisor& a) {
    if (auto samples = samples_in_data(a)) {
        const Value* value =
            a.settings.get(a.settings.get(batch_size) ? batch_size : global_batch_size);
        double accumulation = a.settings.number(gradient_accumulation_steps).value_or(1);
        double now = a.settings.number(batch_size).value_or(0) * accumulation * a.target.gpus;
        if (value && now > *samples) {
            a.warn(*value,
                   fmt::format("the effective batch is {:.0f} and the data set has {:.0f} samples: "
                               "less than one step an epoch",
                               now, *samples),
                   "a smaller batch or less accumulation");
        }
    }
    const Value* benchmark = a.settings.get(cudnn_benchmark);
    if (benchmark && benchmark->flag == true && a.settings.flag(deterministic) == true) {
        a.warn(*benchmark,
               "choosing algorithms by timing and deterministic algorithms exclude each other",
               "one of the two");
    }
    int types = 0;
    for (const Value& value : a.settings.values()) {
        bool is_switch = value.convention == Convention::boolean_bf16 ||
                         value.convention == Convention::boolean_fp16;
        types += is_switch && value.flag == true ? 1 : 0;
    }
    if (types > 1)
        a.warn(*a.settings.get(precision), "bf16 and fp16 are both on and exclude each other",
               "one of the two");
    const Value* rate = a.settings.get(learning_rate);
    if (rate && !rate->quoted && a.settings.dialect().name == "plain" &&
        a.document.format() == Format::yaml &&
        rate->text.find_first_of("eE") != std::string::npos &&
        rate->text.find('.') == std::string::npos) {
        a.warn(*rate, fmt::format("PyYAML reads {} as a word, because it has no dot", rate->text),
               fmt::format("{}: {}", rate->path.back(),
                           std::string(rate->text).insert(rate->text.find_first_of("eE"), ".0")));
    }
}

}  // namespace

Advice advise(const Document& document, const Settings& settings, const Target& target,
              Level level) {
    Advisor advisor(document, settings, target, level);
    larger_model(advisor);
    workers(advisor);
    loader(advisor);
    mixed_precision(advisor);
    tensor_float(advisor);
    layout(advisor);
    compiled(advisor);
    optimizer_step(advisor);
    batch(advisor);
    rate(advisor);
    clipping(advisor);
    intervals(advisor);
    contradictions(advisor);
    return advisor.take();
}

}  // namespace saturate
