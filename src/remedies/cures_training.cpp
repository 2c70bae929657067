// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "config/reference_jobs.h"
#include "remedies/cures.h"
#include "remedies/learning_rate.h"

namespace saturate {

namespace {

double power_of_two_up_to(double value) {
    return std::exp2(std::floor(std::log2(std::max(1.0, value))));
}
double power_of_two_from(double value) {
    return std::exp2(std::ceil(std::log2(std::max(1.0, value))));
}

double effective_batch(const Assignment& values) {
    auto number = [&](const char* name) {
        auto found = values.find(name);
        return found == values.end() ? std::nullopt : parse_number(found->second);
    };
    return number("batch_size").value_or(0) * number("gradient_accumulation_steps").value_or(1);
}

std::string whole(double value) { return fmt::format("{:.0f}", value); }

// Depends on the facts alone, not on the present batch, so that a second call gives the same
// answer.
struct BatchAim {
    double size = 0;       // fills the card, within memory, data and the usual range
    double fills = 0;      // from this size on the card is full
    double too_large = 0;  // too large even if the estimate is four times too high
};

// Memory estimates four times too high have been seen.
constexpr double kMemoryDoubt = 4;
constexpr double kLeastStepsPerEpoch = 50;

BatchAim batch_aim(const Facts& facts) {
    BatchEstimate estimate = estimate_batch(saturate::estimate(*facts.shape), *facts.gpu,
                                            facts.best_precision(), facts.is_on("compile"));
    double most = std::min(power_of_two_up_to(estimate.fits), facts.shape->usual_batch_max);
    if (facts.dataset_size > 0)
        most = std::min(most, power_of_two_up_to(static_cast<double>(facts.dataset_size) /
                                                 kLeastStepsPerEpoch));
    return {.size = std::max(1.0, std::min(power_of_two_from(estimate.fills), most)),
            .fills = estimate.fills,
            .too_large = kMemoryDoubt * std::max(1.0, estimate.fits)};
}

bool grows_by(const Facts& facts, Setting setting) {
    const ReferenceJob* job = facts.shape ? find_reference_job(facts.shape->kind) : nullptr;
    return job && std::ranges::find(job->grows_by, setting) != job->grows_by.end();
}

Proposal grow(const Facts& facts, Setting setting, double wanted) {
    std::string_view name = info_of(setting).name;
    if (facts.on_cpu || !facts.gpu || !grows_by(facts, setting))
        return {.reason = "a larger model is another model"};
    auto now = facts.number(name);
    if (!now) return {.reason = "the file does not say its size"};
    if (*now >= wanted) return {.reason = "it already suits the size of the card"};
    return {
        .value = whole(wanted),
        .reason = fmt::format("the {} has the memory and speed for it; this is another model",
                              facts.device()),
        .expect = fmt::format("{:.1f} times as large; compare quality, not speed", wanted / *now)};
}

double gigabytes(const Facts& facts) {
    return facts.gpu ? static_cast<double>(facts.gpu->memory_bytes) / 1e9 : 0;
}

// 8 GB: 2, 12 to 16 GB: 3, 24 GB and more: 4
double memory_steps(const Facts& facts) {
    return std::clamp(std::round(gigabytes(facts) / 8) + 1, 2.0, 4.0);
}

Proposal rarer(const Facts& facts, const char* name, std::string reason, std::string expect) {
    constexpr double kEpochs = 5;
    if (facts.number(name) != 1)
        return {.reason = "already less often than every epoch, or not known"};
    auto total = facts.number("epochs");
    if (total && *total < 2 * kEpochs) return {.reason = "the training is short"};
    return {.value = whole(kEpochs), .reason = std::move(reason), .expect = std::move(expect)};
}

}  // namespace

static Proposal cure_batch_size(const Facts& facts) {
    auto now = facts.number("batch_size");
    if (!now) return {.reason = "the batch size is not known"};
    if (facts.on_cpu || !facts.gpu) return {.reason = "on a CPU only a measurement tells"};
    if (!facts.shape)
        return {.reason =
                    "what fits depends on the model, which the file does not show; only a "
                    "measurement tells"};
    BatchAim aim = batch_aim(facts);
    double accumulation = facts.number("gradient_accumulation_steps").value_or(1);
    const std::string card = facts.device();
    if (*now > aim.too_large) {
        double fits = power_of_two_up_to(aim.too_large / kMemoryDoubt);
        double factor = std::ceil(*now / fits);
        Proposal out{
            .value = whole(fits),
            .reason = fmt::format("by estimate {} samples do not fit into the {} of the {}",
                                  whole(*now), bytes_text(facts.gpu->memory_bytes), card),
            .expect = "should not run out of memory; the estimate may be off by several times",
            .with = {{"gradient_accumulation_steps", whole(accumulation * factor)}},
            .level = Level::numerics};
        // A batch for a model that was just made larger was not wrong before.
        if (facts.level < Level::model)
            out.wrong_now = fmt::format("by estimate more than fits into the {} of the {}",
                                        bytes_text(facts.gpu->memory_bytes), card);
        return out;
    }
    std::string filled =
        fmt::format("by estimate about {:.0f} samples fill the {}", std::ceil(aim.fills), card);
    if (aim.size <= *now)
        return {.reason = aim.fills <= *now ? filled
                                            : "anything larger needs a measurement: --benchmark"};
    double factor = aim.size / *now;
    bool folds = accumulation >= factor && std::fmod(accumulation, factor) == 0;
    Proposal out{.value = whole(aim.size),
                 .reason = filled,
                 .expect = "fewer, larger steps; only a run shows how much memory it takes"};
    if (aim.fills > aim.size) out.reason += "; more needs a measurement";
    if (folds) {
        out.with = {{"gradient_accumulation_steps", whole(accumulation / factor)}};
        out.level = Level::numerics;
    }
    return out;
}

static Proposal cure_accumulation(const Facts&) { return {.reason = "follows the batch size"}; }

static Proposal cure_learning_rate(const Facts& facts) {
    auto rate = facts.number("learning_rate");
    double before = effective_batch(facts.start), after = effective_batch(facts.now);
    if (!rate || before <= 0 || after <= 0 || before == after)
        return {.reason = "the effective batch stays"};
    std::string optimizer = lower(value_of(facts.now, "optimizer"));
    LearningRateRule rule = rule_for(optimizer);
    if (rule == LearningRateRule::none)
        return {.reason = fmt::format("no rule is known for {}", optimizer)};
    return {.value = fmt::format("{:.3g}", scaled_learning_rate(*rate, after / before, rule)),
            .reason = fmt::format("{} rule for {} with {:g} times the batch", rule_name(rule),
                                  optimizer, after / before),
            .expect = "same progress per sample; warm up longer"};
}

static Proposal cure_grad_clip(const Facts& facts) {
    auto number = [](const Assignment& values) {
        auto found = values.find("learning_rate");
        return found == values.end() ? 0 : parse_number(found->second).value_or(0);
    };
    if (facts.number("grad_clip")) return {.reason = "gradients are already clipped"};
    if (number(facts.now) <= number(facts.start)) return {.reason = "the learning rate stays"};
    return {.value = "1.0",
            .reason = "a higher learning rate: one bad batch must not ruin the run",
            .expect = "no effect while gradients are small"};
}

static Proposal cure_log_interval(const Facts& facts) {
    constexpr double kLog = 50, kOften = 10;
    auto now = facts.number("log_interval");
    if (facts.is_measuring && facts.on_cpu)
        return {.reason = "on a CPU there is nothing to wait for"};
    if (now && *now >= kOften) return {.reason = "the loss is read rarely enough"};
    return {.value = whole(kLog),
            .reason = "reading the loss makes the host wait for the device",
            .expect = now && *now > 0 ? fmt::format("{:.0f} times fewer waits", kLog / *now)
                                      : "no wait between logs"};
}

static Proposal cure_eval_interval(const Facts& facts) {
    return rarer(facts, "eval_interval", "training stops while it evaluates",
                 "a fifth of the pauses; early stopping reacts later");
}

static Proposal cure_checkpoint_interval(const Facts& facts) {
    return rarer(facts, "checkpoint_interval", "training stops while it saves",
                 "a fifth of the pauses; up to five epochs lost in a crash");
}

static Proposal grow_base_channels(const Facts& facts) {
    return grow(facts, Setting::base_channels, 32 * memory_steps(facts));
}
static Proposal grow_num_blocks(const Facts& facts) {
    double steps = memory_steps(facts);
    return grow(facts, Setting::num_blocks, steps == 2 ? 6 : steps == 3 ? 8 : 12);
}
static Proposal grow_patch_size(const Facts& facts) {
    return grow(facts, Setting::patch_size, 64 * memory_steps(facts));
}
static Proposal grow_hidden_size(const Facts& facts) {
    return grow(facts, Setting::hidden_size, gigabytes(facts) >= 40 ? 256 : 128);
}
static Proposal grow_use_perceptual(const Facts& facts) {
    bool may = facts.gpu && grows_by(facts, Setting::use_perceptual);
    if (!may || memory_steps(facts) < 3 || !facts.is_off("use_perceptual"))
        return {.reason = "another training goal means another model"};
    return {.value = "true",
            .reason =
                "the card has time for a second network that judges the picture; this is "
                "another training goal",
            .expect = "others report sharper pictures; compare quality, not speed"};
}

namespace {

using enum Setting;
using Kind = SourceWay::Kind;

constexpr Remedy kModel[] = {
    {.name = "base_channels",
     .setting = base_channels,
     .source = {Kind::declared},
     .propose = grow_base_channels},
    {.name = "num_blocks",
     .setting = num_blocks,
     .source = {Kind::declared},
     .propose = grow_num_blocks},
    {.name = "patch_size",
     .setting = patch_size,
     .source = {Kind::declared},
     .propose = grow_patch_size},
    {.name = "use_perceptual",
     .setting = use_perceptual,
     .source = {Kind::declared},
     .propose = grow_use_perceptual},
    {.name = "hidden_size",
     .setting = hidden_size,
     .source = {Kind::declared},
     .propose = grow_hidden_size},
};

}  // namespace

namespace {

constexpr Remedy kTraining[] = {
    {.name = "batch_size",
     .setting = batch_size,
     .causes = "F10 F25 F31",
     .relief = Relief::unknown,
     .is_measured = true,
     .pair = "channels_last",
     .source = {Kind::declared, "DataLoader", "batch_size"},
     .expect = "fewer, larger steps",
     .propose = cure_batch_size},
    {.name = "gradient_accumulation_steps",
     .setting = gradient_accumulation_steps,
     .is_measured = true,
     .source = {Kind::declared},
     .expect = "the effective batch stays",
     .propose = cure_accumulation},
    {.name = "learning_rate",
     .setting = learning_rate,
     .is_measured = true,
     .source = {Kind::declared},
     .propose = cure_learning_rate},
    {.name = "grad_clip",
     .setting = grad_clip,
     .source = {Kind::declared},
     .propose = cure_grad_clip},
    {.name = "log_interval",
     .setting = log_interval,
     .causes = "F06",
     .relief = Relief::log,
     .is_measured = true,
     .source = {Kind::loop},
     .propose = cure_log_interval},
    {.name = "eval_interval",
     .setting = eval_interval,
     .causes = "F23",
     .relief = Relief::pause,
     .source = {Kind::declared},
     .propose = cure_eval_interval},
    {.name = "checkpoint_interval",
     .setting = checkpoint_interval,
     .causes = "F23",
     .relief = Relief::pause,
     .source = {Kind::declared},
     .propose = cure_checkpoint_interval},
};

}  // namespace

std::span<const Remedy> model_remedies() { return kModel; }

std::span<const Remedy> training_remedies() { return kTraining; }

}  // namespace saturate
