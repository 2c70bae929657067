// SPDX-License-Identifier: Apache-2.0
#include "engine/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>

#include "base/clock.h"
#include "base/text.h"

namespace saturate {

Trainer::Trainer(Job& job, const TrainSettings& settings, TrainPlaces places,
                 DeviceBackend& backend, TrainObserver& observer, ProcessGroup* group)
    : job_(job),
      settings_(settings),
      places_(std::move(places)),
      backend_(backend),
      observer_(observer),
      ranks_(make_ranks(group)),
      log_(observer, backend),
      data_(job.training_data()),
      validation_(job.validation_data()) {
    check();
    ResolvedPrecision resolved = resolve_precision(settings_, backend_);
    settings_.step.precision = resolved.precision;
    observer_.say(resolved.note);
    for (const std::string& line : settings_.notes) observer_.say(line);
    if (ranks_->count() > 1 && settings_.step.capture && backend_.proves().capture) {
        settings_.step.capture = false;
        observer_.say("the step is not captured: its ranks communicate while it runs");
    }
    settings_.step.full = settings_.batch_size * settings_.accumulation;
    with_machine_errors("the model and its optimizer", [this] {
        step_run_.emplace(job_, settings_.step, backend_);
        if (settings_.ema > 0) mean_.emplace(step_run_->parameters(), settings_.ema);
    });
    tensors_.emplace(job_, *step_run_, mean_, backend_);
}

Trainer::~Trainer() = default;

TrainResult Trainer::run(Recorder& recorder) {
    // The loader reports to the recorder when it ends, so end it before the
    // recorder, on any way out.
    struct Ending {
        ~Ending() { trainer.loader_.reset(); }
        Trainer& trainer;
    } ending{*this};
    log_.begin(recorder, places_.tensorboard);
    log_.ask_collectives([this](std::int64_t mark) { return ranks_->device_times(mark); });
    started_ns_ = now_ns();
    keep_failure([this] {
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
    });
    if (problem_) ranks_->give_up(problem_->found);
    return finish();
}

// A device reports an error only at a later call. The operator that failed is an earlier one, and
// perhaps the step is too.
Problem Trainer::lost_device(const c10::Error& error) const {
    return {.found = fmt::format("the device failed in step {} or shortly before: {}", now_.step,
                                 split(error.what_without_backtrace(), '\n')[0]),
            .expected = "a model and a loss that take this batch",
            .fix =
                "CUDA_LAUNCH_BLOCKING=1 in the environment makes the error come from the "
                "operator that fails; --device cpu often says what is wrong"};
}

// Whatever the job, LibTorch or the machine throws ends the run, not the program: the record and
// the summary are still written. Only a broken invariant of our own (Bug) gets through.
void Trainer::keep_failure(const std::function<void()>& work) {
    auto fail = [this](Problem problem) {
        ended_ = "failed";
        if (!problem_) problem_ = std::move(problem);  // the first is the cause
    };
    auto in_step = [this](const char* what) {
        return fmt::format("the job failed in step {}: {}", now_.step, what);
    };
    try {
        work();
    } catch (const RankLost& lost) {
        Problem cause = lost.problems().at(0);
        keep_failure([&] { save_alone(lost); });
        problem_.reset();
        fail(std::move(cause));
    } catch (const Failure& failure) {  // e.g. too many broken samples, or no memory for one
        fail(failure.problems().at(0));
    } catch (const c10::Error& error) {
        if (backend_.is_lost()) return fail(lost_device(error));
        // E.g. shapes that do not fit, or an index out of range.
        fail({.found = in_step(error.what_without_backtrace()),
              .expected = "a model and a loss that take this batch"});
    } catch (const Bug&) {
        throw;
    } catch (const std::bad_alloc&) {
        fail({.found = in_step("the host has no memory left"),
              .fix = "fewer workers, a smaller batch_size, or a larger memory limit"});
    } catch (const std::exception& error) {
        fail({.found = in_step(error.what())});
    } catch (...) {  // a job may throw anything
        fail({.found = in_step("an exception of an unknown type")});
    }
}

bool Trainer::is_over() {
    if (!over_because_.empty() || ended_ != "done") return true;
    if (settings_.steps && now_.step >= *settings_.steps) {
        over_because_ = fmt::format("{} steps", now_.step);
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

// With several ranks each sends its wish with a step, and all act on it after that step.
StopWish Trainer::stop_wish() {
    StopWish own;
    own.timed_out = settings_.seconds && seconds() >= *settings_.seconds;
    own.interrupted = !own.timed_out && observer_.stop_wanted(place());
    return ranks_->agree(*step_run_, own);
}

// Returns nothing at the end of an epoch. The last step of an epoch may have fewer batches.
std::vector<Upload> Trainer::next_batches() {
    std::vector<Upload> batches;
    ranks_->stands(now_.step, "loading");
    while (!epoch_ended_ && static_cast<std::int64_t>(batches.size()) < settings_.accumulation) {
        std::optional<Upload> batch = feed_->next();
        if (batch)
            batches.push_back(std::move(*batch));
        else
            epoch_ended_ = true;
    }
    ranks_->stands(now_.step, "computing");
    return batches;
}

void Trainer::run_step(std::vector<Upload> batches) {
    Feed::Times fed = feed_->take_times();
    std::int64_t begin = now_ns();
    StepRecord record{.step = now_.step,
                      .start_ns = begin - fed.wait_ns - fed.copy_ns,
                      .input_wait_ns = fed.wait_ns,
                      .copy_ns = fed.copy_ns};
    Trained trained{.step = now_.step};
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

    backend_.mark_begin(now_.step);
    StepTimes times = run_within_memory(tensors);
    if (mean_) mean_->update();
    backend_.mark_end(now_.step);
    losses_->put(now_.step, step_run_->loss());
    trained_.push_back(std::move(trained));

    before_ = now_;
    mark_ = times.mark;
    ++now_.step;
    now_.samples += samples * ranks_->count();
    now_.position = feed_->state();
    now_.epoch_ended = epoch_ended_;
    now_.split = step_run_->split();
    record.start_ns += times.apart_ns;
    record.forward_ns = times.forward_ns;
    record.backward_ns = times.backward_ns;
    record.optimizer_ns = times.optimizer_ns;
    if (times.collectives > 0) {
        record.communication_ns = times.communication_ns;
        if (times.communication_total_ns > 0)
            record.communication_total_ns = times.communication_total_ns;
        record.communication_bytes = times.communication_bytes;
        record.collectives = times.collectives;
    }
    // The step is done and may be in a checkpoint, so it is recorded even if the rest fails.
    std::exception_ptr failed;
    try {
        feed_->top_up();  // copies newly loaded batches while the device works
        std::int64_t launched = now_ns();
        if (backend_.let_catch_up()) record.synchronisation_ns = now_ns() - launched;
        if (losses_->is_full()) log(record);
    } catch (...) {
        failed = std::current_exception();
    }
    record.duration_ns = now_ns() - record.start_ns;
    log_.add(record, times.mark);
    if (failed) std::rethrow_exception(failed);
    log_.write();
}

// Out of memory: half the micro-batch, twice the accumulation, and the same step again.
StepTimes Trainer::run_within_memory(std::span<const TensorBatch> batches) {
    double learning_rate = settings_.schedule.at(now_.step);
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
        // Outside the handler, only the gradients of the failed step are still alive.
        step_run_->optimizer().clear_gradients(true);
        backend_.release_cached();
        micro = (settings_.batch_size + step_run_->split() - 1) / step_run_->split();
        if (micro <= 1) {
            throw MachineError(
                {.found = fmt::format("out of memory with a micro-batch of 1 in step {}: {}",
                                      now_.step, said),
                 .expected = "memory for the model, its gradients and one sample",
                 .fix = settings_.can_recompute
                            ? "gradient_checkpointing: true, a smaller model, or a larger device"
                            : "a smaller model, or a larger device"});
        }
        step_run_->set_split(step_run_->split() * 2);
        std::int64_t half = (settings_.batch_size + step_run_->split() - 1) / step_run_->split();
        std::string line = fmt::format(
            "out of memory in step {}: micro-batch {} instead of {}, {} times the "
            "accumulation",
            now_.step, half, micro, step_run_->split());
        note(EventKind::out_of_memory, line, {},
             Json::object({{"micro_batch", half}, {"split", step_run_->split()}, {"said", said}}));
        observer_.say(line);
    }
}

void Trainer::act_between_steps() {
    if (ended_ == "failed") return;
    auto is_due = [this](std::int64_t interval) {
        return interval > 0 && now_.step % interval == 0;
    };
    if (is_due(settings_.check_ranks)) ranks_->compare_weights(step_run_->parameters(), now_.step);
    if (is_due(settings_.eval_steps)) evaluate_now();
    if (is_due(settings_.checkpoint_steps)) save_checkpoint(false);
}

void Trainer::end_epoch() {
    epoch_ended_ = now_.epoch_ended = false;
    now_.position = feed_->state();
    std::int64_t epochs = feed_->state().epoch;  // that are complete
    note(EventKind::epoch, fmt::format("epoch {} ended", epochs - 1));
    if (settings_.eval_epochs > 0 && epochs % settings_.eval_epochs == 0) evaluate_now();
    if (settings_.checkpoint_epochs > 0 && epochs % settings_.checkpoint_epochs == 0)
        save_checkpoint(false);
}

void Trainer::evaluate_now() {
    if (!validation_ || evaluated_at_ == now_.step || ended_ == "failed") return;
    evaluated_at_ = now_.step;
    // Evaluating waits for the device anyway, so check every loss so far first.
    look_at_losses();
    if (ended_ == "failed") return;
    std::int64_t begin = now_ns();
    ranks_->stands(now_.step, "evaluating");
    Evaluation done = evaluate_mean();
    Metric metric = job_.metric();
    bool better = std::isfinite(done.value) &&
                  (!now_.best ||
                   (metric.higher_is_better ? done.value > *now_.best : done.value < *now_.best));
    now_.metric = done.value;
    if (!now_.first_metric) now_.first_metric = done.value;
    std::string line =
        fmt::format("step {}: {} {:.5g}{}{} over {} samples", now_.step, metric.name, done.value,
                    metric.unit.empty() ? "" : " ", metric.unit, done.samples);
    if (better && now_.best) line += fmt::format(" (best so far, was {:.5g})", *now_.best);
    note(EventKind::evaluation, line, now_ns() - begin,
         Json::object({{"metric", metric.name},
                       {"value", done.value},
                       {"unit", metric.unit},
                       {"samples", done.samples},
                       {"best", better}}));
    observer_.say(line);
    log_.curve("evaluation/" + metric.name, now_.step, done.value);
    now_.evaluations_worse = better ? 0 : now_.evaluations_worse + 1;
    if (better) {
        now_.best = done.value;
        now_.best_step = now_.step;
        save_checkpoint(true);
    }
    if (settings_.early_stopping > 0 && now_.evaluations_worse >= settings_.early_stopping)
        over_because_ =
            fmt::format("no better {} in {} evaluations", metric.name, now_.evaluations_worse);
}

// Evaluates with the moving average of the weights in the model, if there is one.
Evaluation Trainer::evaluate_mean() {
    MeanInPlace swapped(mean_);
    EvaluationSettings how{.batch_size = settings_.eval_batch_size,
                           .workers = settings_.workers,
                           .cores = settings_.cores,
                           .seed = settings_.seed,
                           .precision = settings_.step.precision,
                           .channels_last = settings_.step.channels_last};
    how.memory = evaluation_memory_;
    how.prefetch_bytes = prefetch_bytes(settings_.eval_batch_size);
    how.shard = ranks_->shard();
    how.share = [this](torch::Tensor& sums, std::int64_t& samples) { ranks_->sum(sums, samples); };
    return evaluate(job_, validation_, how, backend_, log_.recorder());
}

void Trainer::conclude() {
    look_at_losses();
    if (ended_ == "failed" || now_.step == first_step_) return;
    bool wants_evaluation = settings_.eval_epochs > 0 || settings_.eval_steps > 0;
    if (ended_ == "done" && wants_evaluation) evaluate_now();
    if (ended_ != "failed") save_checkpoint(false);
}

TrainResult Trainer::finish() {
    // A lost device only repeats its error.
    bool answers = !backend_.is_lost();
    if (answers) keep_failure([this] { look_at_losses(); });  // of a run that failed
    keep_failure([this] {
        if (writer_) writer_->wait();
        tell_saved();
        check_kept();
    });
    if (answers) keep_failure([this] { backend_.synchronise(); });
    keep_failure([this] { log_.write_all(); });
    TrainResult result{.ended = ended_,
                       .why = over_because_,
                       .problem = problem_,
                       .metric = now_.metric,
                       .metric_best = now_.best,
                       .metric_first = now_.first_metric,
                       .best_step = now_.best_step,
                       .device_lost = !answers};
    RunSummary& summary = result.summary;
    summary.ended = ended_;
    summary.duration_ns = now_ns() - started_ns_;
    Account account = log_.account();
    account.fill(summary);
    result.communication_percent = account.timed.percent(StepPart::communication_total);
    result.room = room_;
    result.device_span_percent = log_.span_percent();
    if (answers) summary.memory_peak_bytes = backend_.memory().peak_bytes;
    summary.loss_first = loss_first_;
    summary.loss_last = loss_last_;
    log_.end();
    return result;
}

}  // namespace saturate
