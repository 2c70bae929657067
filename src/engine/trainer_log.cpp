// SPDX-License-Identifier: Apache-2.0
// What the trainer reports while it works: step records, losses read back, progress.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "engine/trainer.h"

namespace saturate {

namespace {

// With the gradient scaler single steps may fail; this many in a row are no accident.
constexpr std::int64_t kNonfiniteMost = 25;

}  // namespace

void Trainer::log(StepRecord& record) {
    std::int64_t begin = now_ns();
    if (auto losses = losses_->turn()) read_.push_back(std::move(*losses));
    look_at_read();
    log_.show(progress(log_.take_interval()), read_step_);
    tell_saved();
    record.log_ns = now_ns() - begin;
    if (!unsent_loss_) return;
    record.loss = *unsent_loss_;
    record.loss_step = read_step_;
    unsent_loss_.reset();
}

void Trainer::look_at_losses() {
    if (!losses_) return;
    ranks_->settle();
    for (ReadLosses& losses : losses_->drain()) read_.push_back(std::move(losses));
    look_at_read();
}

// The losses of an interval stay in the queue until the other ranks' are known: if a rank is lost
// meanwhile, this rank still checks its own.
void Trainer::look_at_read() {
    while (!read_.empty()) {
        ReadLosses losses = read_.front();
        if (!backend_.simulated()) ranks_->mean(losses.values);
        std::vector<float> own = std::move(read_.front().values);
        read_.pop_front();
        look_at(losses, own);
    }
}

// Checks the losses of an interval, read late. The first non-finite loss ends the run, unless the
// scaler has skipped that step.
void Trainer::look_at(const ReadLosses& losses, const std::vector<float>& own) {
    if (backend_.simulated()) {  // learns nothing, so this is not a loss
        trained_.erase(trained_.begin(),
                       trained_.begin() + static_cast<std::ptrdiff_t>(losses.values.size()));
        return;
    }
    double sum = 0;
    std::int64_t finite = 0;
    for (std::size_t i = 0; i < losses.values.size(); ++i) {
        float loss = losses.values[i];
        std::int64_t step = losses.first_step + static_cast<std::int64_t>(i);
        while (trained_.front().step < step) trained_.pop_front();
        Trained trained = std::move(trained_.front());
        trained_.pop_front();
        if (std::isfinite(loss)) {
            nonfinite_row_ = 0;
            sum += loss;
            ++finite;
            if (!loss_first_) loss_first_ = loss;
            loss_last_ = loss;
            continue;
        }
        ++nonfinite_row_;
        bool skipped = step_run_->scaler() != nullptr && nonfinite_row_ < kNonfiniteMost;
        note(EventKind::nonfinite_loss,
             fmt::format("loss of step {} is {}{}", step, loss, skipped ? ": step skipped" : ""),
             {},
             Json::object({{"step", step}, {"epoch", trained.epoch}, {"batch", trained.batch}}));
        if (skipped || problem_) continue;
        stop_for(trained, loss);
        // Every rank ends because of it; the rank with the bad batch knows the samples.
        std::string named = ranks_->text_of_any(std::isfinite(own[i]) ? "" : problem_->found);
        if (!named.empty()) problem_->found = named;
    }
    read_step_ = losses.first_step + static_cast<std::int64_t>(losses.values.size()) - 1;
    read_loss_ = finite > 0 ? std::optional(sum / static_cast<double>(finite)) : std::nullopt;
    unsent_loss_ = losses.values.back();
}

void Trainer::stop_for(const Trained& trained, float loss) {
    std::vector<std::string> names;
    for (std::int64_t sample : trained.samples) names.push_back(data_->name_of(sample));
    ended_ = "failed";
    problem_ = Problem{
        .found = fmt::format(
            "the loss of step {} is {}: batch {} of epoch {}, which begins with {}", trained.step,
            std::isnan(loss) ? "nan" : "infinite", trained.batch, trained.epoch, join(names, ", ")),
        .expected = "a finite loss",
        .fix =
            "check these samples; otherwise use a lower learning_rate, warmup_steps or grad_clip"};
}

double Trainer::seconds() const { return static_cast<double>(now_ns() - started_ns_) / 1e9; }

TrainPlace Trainer::place() const {
    TrainPlace out{.step = now_.step, .steps = total_steps(), .seconds_left = {}};
    if (out.steps && now_.step > first_step_) {
        double each = seconds() / static_cast<double>(now_.step - first_step_);
        out.seconds_left =
            each * static_cast<double>(std::max<std::int64_t>(0, *out.steps - now_.step));
    }
    if (settings_.seconds) {
        double rest = std::max(0.0, *settings_.seconds - seconds());
        out.seconds_left = std::min(out.seconds_left.value_or(rest), rest);
    }
    return out;
}

TrainProgress Trainer::progress(const StepSums& interval) const {
    TrainPlace where = place();
    TrainProgress out{
        .epoch = feed_->state().epoch,
        .epochs = settings_.epochs,
        .step = where.step,
        .steps = where.steps,
        .loss = read_loss_,
        .learning_rate = settings_.schedule.at(now_.step - 1),
        .samples_per_second = interval.samples_per_second().value_or(0) * ranks_->count(),
        .input_wait_percent = interval.percent(StepPart::input_wait).value_or(0),
        .memory_bytes = backend_.memory().peak_bytes,
        .seconds_left = where.seconds_left};
    if (backend_.proves().exact_busy) out.busy_percent = interval.percent(StepPart::device_busy);
    return out;
}

}  // namespace saturate
