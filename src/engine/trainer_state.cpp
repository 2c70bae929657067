// SPDX-License-Identifier: Apache-2.0
// What a checkpoint stores of the trainer, and how it is restored.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "engine/trainer.h"

namespace saturate {

Json Trainer::facts(const TrainFacts& of) const {
    Json out = of.json();
    out.set("batch_size", settings_.batch_size);
    out.set("ranks", ranks_->count());
    out.set("seed", settings_.seed);
    out.set("set", Json::array_of(settings_.set_values));
    out.set("metric_name", job_.metric().name);
    return out;
}

void Trainer::save_checkpoint(bool is_best) {
    if (places_.checkpoints.empty() || (saved_at_ == now_.step && !is_best)) return;
    // Check every loss so far first: never save weights that a nan went through.
    look_at_losses();
    if (ended_ == "failed") return;
    std::int64_t begin = now_ns();
    NamedTensors others = ranks_->random_states(backend_);
    saved_at_ = now_.step;
    if (!writer_) return;  // not the rank that writes
    Checkpoint checkpoint = tensors_->take();
    checkpoint.step = now_.step;
    checkpoint.facts = facts(now_);
    for (auto& item : others) checkpoint.state.push_back(std::move(item));
    writer_->save(std::move(checkpoint), is_best);
    note(EventKind::checkpoint,
         fmt::format("checkpoint of step {} handed to the writer", now_.step), now_ns() - begin);
}

// Takes a checkpoint after a rank was lost. Every remaining rank has the complete weights of the
// last step; the one with the lowest number saves them. A device that still waits for the last
// step's sums has the weights of the step before, and only until its collectives are aborted: then
// it would go on with partial sums.
std::optional<Checkpoint> Trainer::take_alone(const RankLost& lost) {
    int writes = 0;
    while (std::ranges::find(lost.ranks(), writes) != lost.ranks().end()) ++writes;
    if (places_.checkpoints.empty() || now_.step == first_step_ || ranks_->rank() != writes)
        return std::nullopt;
    AtMark at = ranks_->stands_at(mark_);
    if (at == AtMark::before) return std::nullopt;  // still computing: its weights are unknown
    const TrainFacts& of = at == AtMark::passed ? now_ : before_;
    if (of.step == first_step_) return std::nullopt;
    // Rank 0 may be lost before the checkpoint that it was writing is complete.
    if (of.step == saved_at_ && (writer_ || has_checkpoint(places_.checkpoints, of.step)))
        return std::nullopt;
    Checkpoint out;
    if (at == AtMark::passed) {
        ranks_->lose_others();
        out = tensors_->take();
    } else {
        backend_.run_beside([&] { out = tensors_->take(); });
    }
    out.step = of.step;
    out.facts = facts(of);
    return out;
}

void Trainer::save_alone(const RankLost& lost) {
    std::optional<Checkpoint> kept;
    keep_failure([&] { kept = take_alone(lost); });
    // The device's pending work waits for the lost rank, and so would reading its losses.
    ranks_->lose_others();
    // Never save weights that a nan went through.
    look_at_losses();
    if (!kept || ended_ == "failed") return;
    if (!writer_)
        writer_.emplace(places_.checkpoints, static_cast<std::size_t>(settings_.checkpoint_keep));
    std::int64_t step = kept->step;
    saved_at_ = step;
    writer_->save(std::move(*kept), false);
    note(EventKind::checkpoint, fmt::format("checkpoint of step {} handed to the writer", step));
    observer_.say(fmt::format("checkpoint of step {} kept, to resume from", step));
}

void Trainer::tell_saved() {
    if (!writer_) return;
    for (const SavedCheckpoint& saved : writer_->take_finished()) {
        std::string line =
            saved.failure.empty()
                ? fmt::format("checkpoint of step {} written{}", saved.step,
                              saved.is_best ? ", the best so far" : "")
                : fmt::format(
                      "the checkpoint of step {} could not be written, training continues: {}",
                      saved.step, saved.failure);
        if (saved.failure.empty()) kept_step_ = saved.step;
        unkept_ = saved.failure.empty() ? std::nullopt : std::optional(saved);
        note(EventKind::checkpoint, line, saved.duration_ns,
             Json::object({{"path", saved.path.string()},
                           {"best", saved.is_best},
                           {"failed", !saved.failure.empty()}}));
        if (!saved.failure.empty()) observer_.say(line);
    }
}

// A run whose weights nobody has is a failure, whatever it learnt.
void Trainer::check_kept() const {
    if (!unkept_) return;
    throw MachineError(
        {.where = {places_.checkpoints.string()},
         .found = fmt::format("the checkpoint of step {}, the last, could not be written: {}",
                              unkept_->step, unkept_->failure),
         .expected = "free space on the disk and permission to write",
         .fix = kept_step_ ? fmt::format("free some space, then --resume continues from step {}",
                                         *kept_step_)
                           : std::string("free some space, or choose a folder on another disk with "
                                         "-o; no checkpoint was written at all")});
}

void Trainer::restore(const FoundCheckpoint& found) {
    const Checkpoint& checkpoint = found.checkpoint;
    for (const std::string& line : found.skipped) observer_.say("skipped: " + line);
    auto batch_size = checkpoint.facts["batch_size"].integer();
    if (batch_size != settings_.batch_size) {
        throw UserError(
            {.where = {found.path.string()},
             .found = fmt::format("made with batch_size {}, but it is {} now",
                                  batch_size.value_or(0), settings_.batch_size),
             .expected = "the same batch_size: the position in the data is counted in batches",
             .fix = fmt::format("--set batch_size={}", batch_size.value_or(32))});
    }
    if (auto seed = checkpoint.facts["seed"].integer();
        seed && static_cast<std::uint64_t>(*seed) != settings_.seed) {
        throw UserError(
            {.where = {found.path.string()},
             .found = fmt::format("made with seed {}, but it is {} now", *seed, settings_.seed),
             .expected = "the same seed: it sets the order of the data",
             .fix = fmt::format("--set seed={}", *seed)});
    }
    for (const std::string& line : tensors_->put(found, random_kept_)) observer_.say(line);
    now_ = TrainFacts::of(checkpoint.step, checkpoint.facts);
    if (now_.split > 1) step_run_->set_split(now_.split);
    auto ranks_before = static_cast<int>(checkpoint.facts["ranks"].integer().value_or(1));
    if (ranks_before != ranks_->count()) convert_position(ranks_before);
    saved_at_ = now_.step;
    kept_step_ = now_.step;
    observer_.say(fmt::format("resumed from {} at step {}", found.path.string(), now_.step));
}

// Continues the data where it stopped: the samples of the epoch that are done stay done, whichever
// rank did them. A remainder that does not fill a step of all ranks is repeated.
void Trainer::convert_position(int ranks_before) {
    std::int64_t done = now_.position.batch * ranks_before;  // of all ranks in this epoch
    std::int64_t ranks = ranks_->count(), step = settings_.batch_size * settings_.accumulation;
    now_.position.batch = done / ranks;
    observer_.say(
        fmt::format("the checkpoint was made on {} ranks, and there are {} now: a step has {} "
                    "samples instead of {}",
                    ranks_before, ranks, step * ranks, step * ranks_before));
    if (done % ranks > 0)
        observer_.say(fmt::format("{} samples of the epoch are seen again",
                                  done % ranks * settings_.batch_size));
}

}  // namespace saturate
