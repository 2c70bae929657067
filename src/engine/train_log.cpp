// SPDX-License-Identifier: Apache-2.0
#include "engine/train_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace saturate {

void TrainLog::begin(Recorder& recorder, const std::filesystem::path& tensorboard) {
    recorder_ = &recorder;
    if (!tensorboard.empty()) curves_.emplace(tensorboard);
}

void TrainLog::note(EventKind kind, std::int64_t step, const std::string& text,
                    std::optional<std::int64_t> duration_ns, Json values) {
    recorder_->event({.kind = kind,
                      .time_ns = now_ns(),
                      .duration_ns = duration_ns,
                      .step = step,
                      .text = text,
                      .values = std::move(values)});
}

void TrainLog::curve(const std::string& name, std::int64_t step, double value) {
    if (curves_) curves_->scalar(name, step, value);
}

void TrainLog::add(const StepRecord& record, std::optional<std::int64_t> mark) {
    unsent_.push_back({record, mark});
}

bool TrainLog::fill_times(Unsent& step, bool tells) {
    StepRecord& record = step.record;
    DeviceProof proof = backend_.proves();
    std::optional<std::int64_t> took = tells ? backend_.step_ns(record.step) : std::nullopt;
    // A span includes idle gaps, so it is not busy time.
    if (proof.exact_busy) record.device_busy_ns = took;
    step.span_ns = proof.exact_busy ? std::nullopt : took;
    std::optional<CollectiveTimes> times;
    if (step.mark && tells) times = ask_collectives_(*step.mark);
    if (times) {
        record.communication_ns = times->exposed_ns;
        record.communication_total_ns = times->total_ns;
    } else if (step.mark || !proof.exposed_communication) {
        // The host's wait was for the ranks' agreement, not for the device's sums.
        record.communication_ns.reset();
        record.communication_total_ns.reset();
    } else if (record.device_busy_ns && record.communication_ns) {
        // The CPU counts waiting for other ranks as work.
        *record.device_busy_ns -= *record.communication_ns;
    }
    return took && (times || !step.mark);
}

void TrainLog::write(bool all) {
    bool tells = !all || !backend_.is_lost();
    while (!unsent_.empty()) {
        constexpr std::size_t kMost = 256;
        Unsent step = unsent_.front();
        if (!fill_times(step, tells) && !all && unsent_.size() < kMost) return;
        account_.add(step.record);
        if (step.span_ns && step.record.step > 0) {  // the first step is unlike the others
            span_ns_ += *step.span_ns;
            spanned_ns_ += step.record.duration_ns;
        }
        recorder_->step(step.record);
        unsent_.pop_front();
    }
}

std::optional<double> TrainLog::span_percent() const {
    if (spanned_ns_ <= 0) return std::nullopt;
    return std::min(100.0, 100 * static_cast<double>(span_ns_) / static_cast<double>(spanned_ns_));
}

void TrainLog::show(const TrainProgress& line, std::optional<std::int64_t> loss_step) {
    observer_.progress(line);
    if (!curves_) return;
    std::int64_t step = line.step - 1;
    if (loss_step && line.loss) curves_->scalar("loss", *loss_step, *line.loss);
    curves_->scalar("learning_rate", step, line.learning_rate);
    curves_->scalar("samples_per_second", step, line.samples_per_second);
    curves_->scalar("input_wait_percent", step, line.input_wait_percent);
    if (line.busy_percent) curves_->scalar("busy_percent", step, *line.busy_percent);
    curves_->flush();
}

void TrainLog::end() {
    if (curves_ && !curves_->failure().empty())
        observer_.say(fmt::format("curves are incomplete: {}", curves_->failure()));
}

}  // namespace saturate
