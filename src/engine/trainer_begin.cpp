// SPDX-License-Identifier: Apache-2.0
// What the trainer does before the first step: checks, the loader and its limits, equal ranks.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "engine/trainer.h"

namespace saturate {

namespace {

constexpr std::int64_t kRingMost = 4096;  // losses kept on the device

}  // namespace

void Trainer::check() const {
    std::int64_t size = data_->size(), ranks = ranks_->count();
    if (settings_.batch_size > size / ranks && ranks > 1) {
        throw UserError(
            {.found = fmt::format("batch_size is {} on each of {} ranks, and the training data has "
                                  "{} samples",
                                  settings_.batch_size, ranks, size),
             .expected = fmt::format("1 to {}", size / ranks),
             .fix = fmt::format("batch_size: {}", std::max<std::int64_t>(1, size / ranks))});
    }
    if (settings_.batch_size > size) {
        throw UserError(
            {.found = fmt::format("batch_size is {}, and the training data has {} {}",
                                  settings_.batch_size, size, size == 1 ? "sample" : "samples"),
             .expected = fmt::format("1 to {}", size),
             .fix = fmt::format("batch_size: {}", std::max<std::int64_t>(1, size))});
    }
    if (settings_.schedule.kind == ScheduleKind::cosine && !settings_.steps && !settings_.epochs) {
        throw UserError({.found = "schedule: cosine needs to know how many steps there will be",
                         .expected = "epochs or --steps; --seconds alone is not enough",
                         .fix = "schedule: constant"});
    }
}

void Trainer::begin() {
    begin_ranks();
    loader_.emplace(data_,
                    LoaderSettings{.batch_size = settings_.batch_size,
                                   .workers = settings_.workers,
                                   .cores = settings_.cores,
                                   .prefetch_factor = settings_.prefetch_factor,
                                   .prefetch_bytes = prefetch_bytes(settings_.batch_size),
                                   .seed = settings_.seed,
                                   .shard = ranks_->shard(),
                                   .bad_samples_max = settings_.bad_samples_max,
                                   .memory = backend_.slab_memory()},
                    log_.recorder(), now_.position);
    feed_.emplace(*loader_, backend_, now_.position);
    if (settings_.one_batch) feed_->repeat_first();
    tell_of_data();
    tell_of_prefetch();
    std::int64_t batches = loader_->batches_per_epoch();
    steps_per_epoch_ = (batches + settings_.accumulation - 1) / settings_.accumulation;
    settings_.schedule.total_steps = total_steps().value_or(0);
    settings_.schedule.steps_per_drop = settings_.schedule_step_epochs * steps_per_epoch_;
    losses_.emplace(backend_, std::min(settings_.log_interval, kRingMost));
    if (!places_.checkpoints.empty() && ranks_->is_first())
        writer_.emplace(places_.checkpoints, static_cast<std::size_t>(settings_.checkpoint_keep));
    evaluation_memory_ = kept_memory(backend_.slab_memory());
    backend_.reset_peak();
    first_step_ = now_.step;
    epoch_ended_ = now_.epoch_ended;
}

// Compares the settings that must be equal for all ranks to take the same steps. Then copies rank
// 0's weights, fresh or from a checkpoint, to all ranks.
void Trainer::begin_ranks() {
    const TrainSettings& s = settings_;
    auto shown = [](const std::optional<std::int64_t>& value) {
        return value ? std::to_string(*value) : std::string("-");
    };
    ranks_->stands(now_.step, "beginning");
    ranks_->compare(
        {{"training samples", std::to_string(data_->size())},
         {"validation samples", std::to_string(validation_ ? validation_->size() : 0)},
         {"batch_size", std::to_string(s.batch_size)},
         {"gradient_accumulation_steps", std::to_string(s.accumulation)},
         {"seed", std::to_string(s.seed)},
         {"epochs", shown(s.epochs)},
         {"steps", shown(s.steps)},
         {"intervals",
          fmt::format("{} {} {} {} {} {} {}", s.log_interval, s.eval_epochs, s.eval_steps,
                      s.checkpoint_epochs, s.checkpoint_steps, s.early_stopping, s.check_ranks)},
         {"precision", std::string(precision_name(s.step.precision))},
         {"buckets", fmt::format("{} {}", s.reducer.bucket_bytes, s.reducer.compress)},
         {"moving mean", fmt::format("{}", s.ema)},
         {"shapes of the model", fmt::format("{:x}", hash_of(tensors_->model(), false))}});
    Json mine = now_.json();
    mine.set("step", now_.step);
    Json given = Json::parse(ranks_->text_of_first(mine.line()), "rank 0");
    if (!ranks_->is_first()) {
        now_ = TrainFacts::of(given["step"].integer().value_or(0), given);
        if (now_.split > 1) step_run_->set_split(now_.split);
        if (now_.step > 0) step_run_->optimizer().restored();
    }
    ranks_->from_first(tensors_->shared());
    if (now_.step > 0) saved_at_ = now_.step;
    ranks_->set_random_states(backend_, random_kept_, s.seed, now_.step);
    random_kept_.clear();
    ranks_->compare_weights(step_run_->parameters(), now_.step);
    ranks_->join(*step_run_, job_.model().buffers(), s.reducer);
    if (ranks_->count() > 1)
        observer_.say(fmt::format("ranks: {} x {} samples per step", ranks_->count(),
                                  s.batch_size * s.accumulation));
}

// Limit for all batches held in memory: a share of the memory, but at least enough for the batches
// of a step, those on their way to the device, and two more being filled.
std::uint64_t Trainer::prefetch_bytes(std::int64_t batch_size) const {
    if (settings_.memory_bytes == 0) return 0;
    auto held = static_cast<std::uint64_t>(settings_.accumulation + backend_.uploads_ahead());
    std::uint64_t least = held + kCopiesHeld + 2;
    return std::max<std::uint64_t>(settings_.memory_bytes / kPrefetchShare,
                                   least * slab_bytes(data_->fields(), batch_size));
}

void Trainer::tell_of_prefetch() {
    room_ = loader_->room();
    if (room_.batches >= room_.batches_wanted) return;
    std::string line = fmt::format(
        "prefetch: at most {} batches ahead instead of {}, {} in all: that is 1/{} of the {} that "
        "this process may use",
        room_.batches, room_.batches_wanted, bytes_text(room_.bytes), kPrefetchShare,
        bytes_text(settings_.memory_bytes));
    note(EventKind::note, line);
    observer_.say(line);
}

// Reports how the data was read, if not as it is stored.
void Trainer::tell_of_data() {
    std::vector<std::string> lines = data_->notes();
    if (validation_) {
        for (std::string& line : validation_->notes()) {
            if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
        }
    }
    for (const std::string& line : lines) {
        note(EventKind::note, line);
        observer_.say(line);
    }
}

std::optional<std::int64_t> Trainer::total_steps() const {
    if (settings_.steps) return settings_.steps;
    if (settings_.epochs) return *settings_.epochs * steps_per_epoch_;
    return std::nullopt;
}

}  // namespace saturate
