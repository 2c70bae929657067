// SPDX-License-Identifier: Apache-2.0
#include "engine/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"

namespace saturate {

namespace {

constexpr std::int64_t kRingMost = 4096;  // losses kept on the device

}  // namespace

Trainer::Trainer(Job& job, const TrainSettings& settings, TrainPlaces places,
                 DeviceBackend& backend, TrainObserver& observer, ProcessGroup* group)
    : job_(job),
      settings_(settings),
      places_(std::move(places)),
      backend_(backend),
      observer_(observer),
      group_(group),
      data_(job.training_data()),
      validation_(job.validation_data()) {
    check();
    ResolvedPrecision resolved = resolve_precision(settings_, backend_);
    settings_.step.precision = resolved.precision;
    observer_.say(resolved.note);
    for (const std::string& line : settings_.notes) observer_.say(line);
    if (group_ && settings_.step.capture && backend_.can_capture()) {
        settings_.step.capture = false;
        observer_.say("the step is not captured: its ranks talk while it runs");
    }
    step_run_.emplace(job_, settings_.step, backend_);
    if (settings_.ema > 0) mean_.emplace(step_run_->parameters(), settings_.ema);
}

Trainer::~Trainer() = default;

TrainResult Trainer::run(Recorder& recorder) {
    recorder_ = &recorder;
    started_ns_ = now_ns();
    try {
        begin();
        while (!is_over()) {
            std::vector<Upload> batches = next_batches();
            if (batches.empty()) {
                end_epoch();
            } else {
                run_step(std::move(batches));
                act_between_steps();
            }
        }
        conclude();
    } catch (const RankLost& lost) {
        alone_ = true;
        save_alone(lost);
        ended_ = "failed";
        problem_ = lost.problems().at(0);
    } catch (const Failure& failure) {  // e.g. too many broken samples, or no memory for one
        ended_ = "failed";
        problem_ = failure.problems().at(0);
    } catch (const c10::Error& error) {  // LibTorch's: shapes that do not fit, an index too high
        ended_ = "failed";
        problem_ = Problem{.found = fmt::format("the job failed in step {}: {}", step_,
                                                error.what_without_backtrace()),
                           .expected = "a model and a loss that take this batch"};
    }
    if (group_ && problem_) {
        alone_ = true;
        group_->tell_failed(problem_->found);
    }
    return finish();
}

void Trainer::check() const {
    std::int64_t size = data_->size();
    if (settings_.batch_size > size / ranks() && ranks() > 1) {
        throw UserError(
            {.found = fmt::format("batch_size is {} on each of {} ranks, and the training data has "
                                  "{} samples",
                                  settings_.batch_size, ranks(), size),
             .expected = fmt::format("1 to {}", size / ranks()),
             .fix = fmt::format("batch_size: {}", std::max<std::int64_t>(1, size / ranks()))});
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
                         .expected = "epochs or --steps; --seconds alone does not tell",
                         .fix = "schedule: constant"});
    }
}

void Trainer::begin() {
    if (group_) begin_ranks();
    Shard shard{.rank = group_ ? group_->rank() : 0, .count = ranks()};
    loader_.emplace(data_,
                    LoaderSettings{.batch_size = settings_.batch_size,
                                   .workers = settings_.workers,
                                   .cores = settings_.cores,
                                   .prefetch_factor = settings_.prefetch_factor,
                                   .seed = settings_.seed,
                                   .shard = shard,
                                   .bad_samples_max = settings_.bad_samples_max,
                                   .memory = backend_.slab_memory()},
                    *recorder_, position_);
    feed_.emplace(*loader_, backend_, position_);
    if (settings_.one_batch) feed_->repeat_first();
    std::int64_t batches = loader_->batches_per_epoch();
    steps_per_epoch_ = (batches + settings_.accumulation - 1) / settings_.accumulation;
    settings_.schedule.total_steps = total_steps().value_or(0);
    settings_.schedule.steps_per_drop = settings_.schedule_step_epochs * steps_per_epoch_;
    losses_.emplace(backend_, std::min(settings_.log_interval, kRingMost));
    if (!places_.checkpoints.empty() && shard.rank == 0)
        writer_.emplace(places_.checkpoints, static_cast<std::size_t>(settings_.checkpoint_keep));
    if (!places_.tensorboard.empty()) curves_.emplace(places_.tensorboard);
    backend_.reset_peak();
    first_step_ = step_;
    epoch_ended_then_ = epoch_ended_;
}

std::optional<std::int64_t> Trainer::total_steps() const {
    if (settings_.steps) return settings_.steps;
    if (settings_.epochs) return *settings_.epochs * steps_per_epoch_;
    return std::nullopt;
}

bool Trainer::is_over() {
    if (!over_because_.empty() || ended_ != "done") return true;
    if (settings_.steps && step_ >= *settings_.steps) {
        over_because_ = fmt::format("{} steps", step_);
    } else if (settings_.epochs && !epoch_ended_ && feed_->state().epoch >= *settings_.epochs) {
        over_because_ = fmt::format("{} epochs", *settings_.epochs);
    } else if (StopWish wish = stop_wish(); wish.timed_out) {
        over_because_ = fmt::format("{:g} seconds", *settings_.seconds);
    } else if (wish.interrupted) {
        over_because_ = "interrupted";
        ended_ = "interrupted";
    }
    return !over_because_.empty();
}

// Of several ranks each tells its wish with a step, and all follow after it.
StopWish Trainer::stop_wish() {
    StopWish own;
    own.timed_out = settings_.seconds && seconds() >= *settings_.seconds;
    own.interrupted = !own.timed_out && observer_.stop_wanted();
    if (!is_together()) return own;
    step_run_->wish_to_stop(own);
    return step_run_->wish_of_any();
}

// Nothing at the end of an epoch. The last step of an epoch may have fewer batches.
std::vector<Upload> Trainer::next_batches() {
    std::vector<Upload> batches;
    if (group_) group_->stands(step_, "loading");
    while (!epoch_ended_ && static_cast<std::int64_t>(batches.size()) < settings_.accumulation) {
        std::optional<Upload> batch = feed_->next();
        if (batch)
            batches.push_back(std::move(*batch));
        else
            epoch_ended_ = true;
    }
    if (group_) group_->stands(step_, "computing");
    return batches;
}

void Trainer::run_step(std::vector<Upload> batches) {
    Feed::Times fed = feed_->take_times();
    std::int64_t begin = now_ns();
    StepRecord record{.step = step_,
                      .start_ns = begin - fed.wait_ns - fed.copy_ns,
                      .input_wait_ns = fed.wait_ns,
                      .copy_ns = fed.copy_ns};
    Trained trained{.step = step_};
    std::vector<TensorBatch> tensors;
    std::int64_t samples = 0;
    for (Upload& upload : batches) {
        tensors.push_back(upload.tensors);
        samples += upload.batch.size;
        trained.epoch = upload.batch.epoch;
        trained.batch = upload.batch.index;
        if (trained.samples.empty()) {
            auto few =
                upload.batch.samples.first(std::min(Trained::kNamed, upload.batch.samples.size()));
            trained.samples.assign(few.begin(), few.end());
        }
    }
    record.samples = samples;

    backend_.mark_begin(step_);
    StepTimes times = run_within_memory(tensors);
    if (mean_) mean_->update();
    backend_.mark_end(step_);
    losses_->put(step_, step_run_->loss());
    trained_.push_back(std::move(trained));

    ++step_;
    samples_ += samples * ranks();
    position_ = feed_->state();
    epoch_ended_then_ = epoch_ended_;
    record.start_ns += times.apart_ns;
    record.forward_ns = times.forward_ns;
    record.backward_ns = times.backward_ns;
    record.optimizer_ns = times.optimizer_ns;
    if (group_) {
        record.communication_ns = times.communication_ns;
        if (times.communication_total_ns > 0)
            record.communication_total_ns = times.communication_total_ns;
        record.communication_bytes = times.communication_bytes;
        record.collectives = times.collectives;
    }
    communication_ns_ += times.communication_total_ns;
    std::int64_t done = now_ns();
    if (losses_->is_full()) {
        log();
        record.log_ns = now_ns() - done;
        if (unsent_loss_) {
            record.loss = *unsent_loss_;
            record.loss_step = read_step_;
            unsent_loss_.reset();
        }
    }
    record.duration_ns = now_ns() - record.start_ns;
    unsent_.push_back(record);
    emit_records(false);
}

// Out of memory: half the micro-batch, twice the accumulation, and the same step again.
StepTimes Trainer::run_within_memory(std::span<const TensorBatch> batches) {
    double learning_rate = settings_.schedule.at(step_);
    std::int64_t micro = 0;
    std::string said;
    while (true) {
        try {
            StepTimes times = step_run_->run(batches, learning_rate);
            if (std::string line = step_run_->take_note(); !line.empty()) {
                note(EventKind::note, line);
                observer_.say(line);
            }
            return times;
        } catch (const c10::OutOfMemoryError& error) {
            said = error.what_without_backtrace();
        }
        // Outside the handler: nothing of the failed step is alive any more but its gradients.
        step_run_->optimizer().clear_gradients(true);
        backend_.release_cached();
        micro = (settings_.batch_size + step_run_->split() - 1) / step_run_->split();
        if (micro <= 1) {
            throw MachineError(
                {.found = fmt::format("out of memory with a micro-batch of 1 in step {}: {}", step_,
                                      said),
                 .expected = "memory for the model, its gradients and one sample",
                 .fix = "gradient_checkpointing: true, a smaller model, or a larger device"});
        }
        step_run_->set_split(step_run_->split() * 2);
        std::int64_t half = (settings_.batch_size + step_run_->split() - 1) / step_run_->split();
        std::string line = fmt::format(
            "out of memory in step {}: micro-batch {} instead of {}, {} times the "
            "accumulation",
            step_, half, micro, step_run_->split());
        note(EventKind::out_of_memory, line, {},
             Json::object({{"micro_batch", half}, {"split", step_run_->split()}, {"said", said}}));
        observer_.say(line);
    }
}

void Trainer::act_between_steps() {
    if (ended_ == "failed") return;
    bool evaluate_due = settings_.eval_steps > 0 && step_ % settings_.eval_steps == 0;
    bool save_due = settings_.checkpoint_steps > 0 && step_ % settings_.checkpoint_steps == 0;
    if (is_together() && settings_.check_ranks > 0 && step_ % settings_.check_ranks == 0)
        compare_weights();
    if (evaluate_due) evaluate_now();
    if (save_due) save_checkpoint(false);
}

void Trainer::end_epoch() {
    epoch_ended_ = epoch_ended_then_ = false;
    position_ = feed_->state();
    std::int64_t epochs = feed_->state().epoch;  // that are complete
    note(EventKind::epoch, fmt::format("epoch {} ended", epochs - 1));
    if (settings_.eval_epochs > 0 && epochs % settings_.eval_epochs == 0) evaluate_now();
    if (settings_.checkpoint_epochs > 0 && epochs % settings_.checkpoint_epochs == 0)
        save_checkpoint(false);
}

void Trainer::evaluate_now() {
    if (!validation_ || evaluated_at_ == step_ || ended_ == "failed") return;
    evaluated_at_ = step_;
    // Evaluating waits for the device anyway: every loss so far is looked at first.
    for (const ReadLosses& losses : losses_->drain()) look_at(losses);
    if (ended_ == "failed") return;
    std::int64_t begin = now_ns();
    if (group_) group_->stands(step_, "evaluating");
    Evaluation done = evaluate_mean();
    Metric metric = job_.metric();
    bool better = std::isfinite(done.value) &&
                  (!best_ || (metric.higher_is_better ? done.value > *best_ : done.value < *best_));
    metric_ = done.value;
    if (!first_metric_) first_metric_ = done.value;
    std::string line =
        fmt::format("step {}: {} {:.5g}{}{} over {} samples", step_, metric.name, done.value,
                    metric.unit.empty() ? "" : " ", metric.unit, done.samples);
    if (better && best_) line += fmt::format(" (best so far, was {:.5g})", *best_);
    note(EventKind::evaluation, line, now_ns() - begin,
         Json::object({{"metric", metric.name},
                       {"value", done.value},
                       {"unit", metric.unit},
                       {"samples", done.samples},
                       {"best", better}}));
    observer_.say(line);
    if (curves_) curves_->scalar("evaluation/" + metric.name, step_, done.value);
    evaluations_worse_ = better ? 0 : evaluations_worse_ + 1;
    if (better) {
        best_ = done.value;
        best_step_ = step_;
        save_checkpoint(true);
    }
    if (settings_.early_stopping > 0 && evaluations_worse_ >= settings_.early_stopping)
        over_because_ =
            fmt::format("no better {} in {} evaluations", metric.name, evaluations_worse_);
}

// With the moving mean in the model's place, if there is one; the weights come back in any case.
Evaluation Trainer::evaluate_mean() {
    struct Swapped {
        explicit Swapped(std::optional<WeightMean>& given) : mean(given) {
            if (mean) mean->swap();
        }
        ~Swapped() {
            if (mean) mean->swap();
        }
        std::optional<WeightMean>& mean;
    } swapped(mean_);
    EvaluationSettings how{.batch_size = settings_.eval_batch_size,
                           .workers = settings_.workers,
                           .cores = settings_.cores,
                           .seed = settings_.seed,
                           .precision = settings_.step.precision,
                           .channels_last = settings_.step.channels_last};
    if (group_) {
        how.shard = {.rank = group_->rank(), .count = group_->count()};
        how.share = [this](torch::Tensor& sums, std::int64_t& samples) {
            share_evaluation(sums, samples);
        };
    }
    return evaluate(job_, validation_, how, backend_, *recorder_);
}

void Trainer::conclude() {
    for (const ReadLosses& losses : losses_->drain()) look_at(losses);
    if (ended_ == "failed" || step_ == first_step_) return;
    bool wants_evaluation = settings_.eval_epochs > 0 || settings_.eval_steps > 0;
    if (ended_ == "done" && wants_evaluation) evaluate_now();
    if (ended_ != "failed") save_checkpoint(false);
}

TrainResult Trainer::finish() {
    if (losses_) {  // of a run that failed
        for (const ReadLosses& losses : losses_->drain()) look_at(losses);
    }
    if (writer_) writer_->wait();
    tell_saved();
    backend_.synchronise();
    emit_records(true);
    TrainResult result{.ended = ended_,
                       .why = over_because_,
                       .problem = problem_,
                       .metric = metric_,
                       .metric_best = best_,
                       .metric_first = first_metric_,
                       .best_step = best_step_};
    RunSummary& summary = result.summary;
    summary.ended = ended_;
    summary.duration_ns = now_ns() - started_ns_;
    Account account = account_.account();
    account.fill(summary);
    if (group_ && communication_ns_ > 0 && account.timed.seconds > 0)
        result.communication_percent =
            100 * static_cast<double>(communication_ns_) / 1e9 / account.timed.seconds;
    summary.memory_peak_bytes = backend_.memory().peak_bytes;
    summary.loss_first = loss_first_;
    summary.loss_last = loss_last_;
    if (curves_ && !curves_->failure().empty())
        observer_.say(fmt::format("curves are incomplete: {}", curves_->failure()));
    loader_.reset();
    return result;
}

}  // namespace saturate
