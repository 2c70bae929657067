// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "remedies/rules.h"

namespace saturate {

using enum Setting;

namespace {

double power_of_two_up_to(double value) {
    return std::exp2(std::floor(std::log2(std::max(1.0, value))));
}
double power_of_two_from(double value) {
    return std::exp2(std::ceil(std::log2(std::max(1.0, value))));
}

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

}  // namespace

void advise_batch(Advisor& a) {
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

namespace {

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

}  // namespace

void advise_learning_rate(Advisor& a) {
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

void advise_clipping(Advisor& a) {
    const Value* value = a.settings.get(grad_clip);
    bool raised =
        a.number(learning_rate).value_or(0) > a.settings.number(learning_rate).value_or(0);
    if (value || !raised) return;
    a.want(grad_clip, 1.0,
           {.reason = "a higher learning rate: one bad batch must not ruin the run",
            .effect = "none while gradients are short"});
}

void advise_intervals(Advisor& a) {
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

void warn_of_contradictions(Advisor& a) {
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

}  // namespace saturate
