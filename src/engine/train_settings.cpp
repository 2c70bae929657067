// SPDX-License-Identifier: Apache-2.0
#include "engine/train_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/reference_jobs.h"

namespace saturate {

namespace {

class TrainSettingReader {
  public:
    explicit TrainSettingReader(const Settings& settings) : settings_(settings) {}

    std::vector<Problem> problems;

    [[nodiscard]] std::int64_t whole(Setting setting, std::int64_t otherwise) const {
        auto number = settings_.number(setting);
        return number ? static_cast<std::int64_t>(*number) : otherwise;
    }
    [[nodiscard]] double number(Setting setting, double otherwise) const {
        return settings_.number(setting).value_or(otherwise);
    }
    [[nodiscard]] bool flag(Setting setting, bool otherwise) const {
        return settings_.flag(setting).value_or(otherwise);
    }
    [[nodiscard]] bool has(Setting setting) const {
        const Value* value = settings_.get(setting);
        return value && !value->left_alone;
    }
    [[nodiscard]] Place place(Setting setting) const {
        const Value* value = settings_.get(setting);
        return value ? value->place : Place{};
    }
    // Index of the word in `choices`; 0 if it is absent.
    std::size_t choice(Setting setting, const std::vector<std::string>& choices) {
        std::string word = settings_.word(setting);
        if (word.empty()) return 0;
        for (std::size_t i = 0; i < choices.size(); ++i) {
            if (choices[i] == word) return i;
        }
        Problem problem{.where = place(setting),
                        .found = fmt::format("{} is {}", path_text(settings_.get(setting)->path),
                                             in_quotes(word)),
                        .expected = join(choices, ", ")};
        if (auto meant = closest(word, choices)) problem.fix = fmt::format("{}", *meant);
        problems.push_back(problem);
        return 0;
    }

  private:
    const Settings& settings_;
};

void read_batch(TrainSettingReader& reader, int ranks, TrainSettings& out) {
    using enum Setting;
    out.batch_size = reader.whole(batch_size, 32);
    out.accumulation = reader.whole(gradient_accumulation_steps, 1);
    if (reader.has(global_batch_size)) {
        std::int64_t all = reader.whole(global_batch_size, 1);
        if (!reader.has(batch_size) && all % (out.accumulation * ranks) == 0) {
            out.batch_size = all / (out.accumulation * ranks);
        } else if (!reader.has(gradient_accumulation_steps) &&
                   all % (out.batch_size * ranks) == 0) {
            out.accumulation = all / (out.batch_size * ranks);
        }
        if (out.batch_size * out.accumulation * ranks != all) {
            std::string on_ranks = ranks > 1 ? fmt::format(" on {} ranks", ranks) : "";
            reader.problems.push_back(
                {.where = reader.place(global_batch_size),
                 .found = fmt::format("global_batch_size is {}, and {} x {}{} is {}", all,
                                      out.batch_size, out.accumulation, on_ranks,
                                      out.batch_size * out.accumulation * ranks),
                 .expected = ranks > 1 ? "batch_size x gradient_accumulation_steps x ranks"
                                       : "batch_size x gradient_accumulation_steps",
                 .fix = "leave one of the three out"});
        }
    }
    out.eval_batch_size = reader.whole(eval_batch_size, out.batch_size);
    out.workers = static_cast<int>(reader.whole(num_workers, -1));
    out.prefetch_factor = static_cast<int>(reader.whole(prefetch_factor, 2));
    out.bad_samples_max = reader.whole(bad_samples_max, 100);
    out.seed = static_cast<std::uint64_t>(reader.whole(seed, 0));
}

void read_optimizer(TrainSettingReader& reader, TrainSettings& out) {
    using enum Setting;
    OptimizerSettings& chosen = out.step.optimizer;
    constexpr OptimizerKind kKinds[] = {OptimizerKind::adamw, OptimizerKind::adam,
                                        OptimizerKind::sgd};
    chosen.kind = kKinds[reader.choice(optimizer, {"adamw", "adam", "sgd"})];
    chosen.weight_decay =
        reader.number(weight_decay, chosen.kind == OptimizerKind::adamw ? 0.01 : 0.0);
    chosen.momentum = reader.number(momentum, 0.9);
    chosen.fused = reader.flag(fused_optimizer, true);
    out.step.grad_clip = reader.number(grad_clip, 0);
    out.step.set_to_none = reader.flag(set_to_none, true);

    constexpr ScheduleKind kSchedules[] = {ScheduleKind::constant, ScheduleKind::cosine,
                                           ScheduleKind::step};
    Schedule& course = out.schedule;
    course.kind = kSchedules[reader.choice(schedule, {"constant", "cosine", "step"})];
    course.highest = reader.number(learning_rate, chosen.kind == OptimizerKind::sgd ? 0.01 : 0.001);
    course.least = reader.number(learning_rate_min, 0);
    course.warmup_steps = reader.whole(warmup_steps, 0);
    course.drop_factor = reader.number(schedule_factor, 0.1);
    out.schedule_step_epochs = reader.whole(schedule_step, 30);
    out.ema = reader.number(ema, 0);
    if (course.least > course.highest) {
        reader.problems.push_back(
            {.where = reader.place(learning_rate_min),
             .found = fmt::format("learning_rate_min is {} and learning_rate {}", course.least,
                                  course.highest),
             .expected = "learning_rate_min not above learning_rate"});
    }
}

void read_length(TrainSettingReader& reader, const TrainLimits& limits, TrainSettings& out) {
    using enum Setting;
    bool limited = limits.epochs || limits.steps || limits.seconds;
    if (limits.epochs) {
        out.epochs = limits.epochs;
    } else if (reader.has(epochs) && !limited) {
        out.epochs = reader.whole(epochs, 0);
        if (*out.epochs == 0) {
            reader.problems.push_back({.where = reader.place(epochs),
                                       .found = "epochs is 0: nothing would be trained",
                                       .expected = "1 or more",
                                       .fix = "epochs: 1"});
        }
    } else if (!limited) {
        reader.problems.push_back({.found = "the configuration does not say how long to train",
                                   .expected = "epochs in the configuration, or --epochs, --steps "
                                               "or --seconds",
                                   .fix = "epochs: 10"});
    }
    out.steps = limits.steps;
    out.seconds = limits.seconds;
    out.log_interval = reader.whole(log_interval, 50);
    out.eval_epochs = reader.whole(eval_interval, 1);
    out.eval_steps = reader.whole(eval_steps, 0);
    out.checkpoint_epochs = reader.whole(checkpoint_interval, 1);
    out.checkpoint_steps = reader.whole(checkpoint_steps, 0);
    out.checkpoint_keep = reader.whole(checkpoint_keep, 3);
    out.early_stopping = reader.whole(early_stopping, 0);
    if (out.early_stopping > 0 && out.eval_epochs == 0 && out.eval_steps == 0) {
        reader.problems.push_back({.where = reader.place(early_stopping),
                                   .found = "early_stopping without evaluations has no effect",
                                   .expected = "eval_interval or eval_steps above 0",
                                   .fix = "eval_interval: 1"});
    }
}

void read_device(TrainSettingReader& reader, const Settings& settings, TrainSettings& out) {
    using enum Setting;
    out.step.channels_last = reader.flag(channels_last, false);
    out.precision_wish = settings.precision();
    const Value* wish = settings.get(precision);
    out.precision_auto = wish && wish->left_alone;
    if (const Value* value = settings.get(compile); value && value->flag.value_or(false)) {
        std::string word = lower(value->text);
        bool named = word == "reduce-overhead" || word == "max-autotune";
        out.compile = named ? word : "default";
        std::string mode = settings.word(compile_mode);
        if (!named && (mode == "reduce-overhead" || mode == "max-autotune")) out.compile = mode;
    }
    out.step.capture = out.step.compile = out.compile != "off";  // for a GPU, for the CPU
    out.device.tf32 = reader.flag(tf32, true);
    out.step.tf32 = out.device.tf32;
    out.device.cudnn_benchmark = reader.flag(cudnn_benchmark, true);
    out.device.deterministic = reader.flag(deterministic, false);
    out.device.pin_memory = reader.flag(pin_memory, true);
    out.device.threads = static_cast<int>(reader.whole(threads, 0));
    out.device.memory_limit_bytes =
        static_cast<std::int64_t>(reader.number(memory_limit, 0) * 1024.0 * 1024.0 * 1024.0);
    if (reader.has(persistent_workers) && !reader.flag(persistent_workers, true))
        out.notes.emplace_back("persistent_workers: false has no effect: threads outlive an epoch");
    if (reader.has(non_blocking) && !reader.flag(non_blocking, true))
        out.notes.emplace_back("non_blocking: false has no effect: copies never hold up the host");
}

void read_recompute(TrainSettingReader& reader, const Settings& settings, TrainSettings& out) {
    bool wanted = reader.flag(Setting::gradient_checkpointing, false);
    const ReferenceJob* job = find_reference_job(settings.word(Setting::job));
    if (job && wanted && !job->can_recompute)
        out.notes.push_back(fmt::format(
            "gradient_checkpointing: true has no effect: {} has no blocks to compute again",
            job->name));
    out.can_recompute = job && job->can_recompute && !wanted;
}

void read_ranks(TrainSettingReader& reader, TrainSettings& out) {
    using enum Setting;
    out.check_ranks = reader.whole(check_ranks, 0);
    out.reducer.compress = reader.choice(gradient_compression, {"none", "bf16"}) == 1;
    if (reader.has(bucket_size)) {
        out.reducer.bucket_bytes =
            static_cast<std::int64_t>(reader.number(bucket_size, 4) * 1024.0 * 1024.0);
        out.reducer.first_bucket_bytes =
            std::min(out.reducer.first_bucket_bytes, out.reducer.bucket_bytes);
    }
}

}  // namespace

TrainSettings train_settings(const Settings& settings, const TrainLimits& limits) {
    TrainSettings out;
    TrainSettingReader reader(settings);
    read_batch(reader, limits.ranks, out);
    read_optimizer(reader, out);
    read_length(reader, limits, out);
    read_device(reader, settings, out);
    read_recompute(reader, settings, out);
    read_ranks(reader, out);
    if (!reader.problems.empty()) throw UserError(reader.problems);
    return out;
}

ResolvedPrecision resolve_precision(const TrainSettings& settings, const DeviceBackend& backend) {
    bool on_cpu = backend.device().is_cpu();
    Precision best = backend.has_bf16() ? Precision::bf16
                     : on_cpu           ? Precision::fp32
                                        : Precision::fp16;
    if (settings.precision_auto) {
        return {best, fmt::format("precision: {}, the best for {}", precision_name(best),
                                  backend.name())};
    }
    if (!settings.precision_wish || !settings.precision_wish->on)
        return {Precision::fp32, "precision: fp32"};
    if (!settings.precision_wish->type) {
        if (best != Precision::fp32) {
            return {best, fmt::format("precision: {}, the best for {}", precision_name(best),
                                      backend.name())};
        }
        return {best,
                "precision: fp32, because this CPU has no bf16 arithmetic: mixed precision "
                "would be slower"};
    }
    Precision named = *settings.precision_wish->type;
    if (on_cpu && (named == Precision::fp16 || !backend.has_bf16())) {
        return {named, fmt::format("precision: {}, slower than fp32 on this CPU, which has no "
                                   "arithmetic for it",
                                   precision_name(named))};
    }
    return {named, fmt::format("precision: {}", precision_name(named))};
}

}  // namespace saturate
