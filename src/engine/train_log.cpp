// SPDX-License-Identifier: Apache-2.0
#include "engine/train_log.h"

#include <fmt/format.h>

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

void TrainLog::add(const StepRecord& record) {
    unsent_.push_back(record);
    write(false);
}

void TrainLog::write_all() { write(true); }

void TrainLog::write(bool all) {
    DeviceProof proof = backend_.proves();
    bool tells = !all || !backend_.is_lost();
    while (!unsent_.empty()) {
        StepRecord& record = unsent_.front();
        std::optional<std::int64_t> took = tells ? backend_.step_ns(record.step) : std::nullopt;
        constexpr std::size_t kMost = 256;
        if (!took && !all && unsent_.size() < kMost) return;
        // A span, holes included, is not busy time: better none than that.
        if (proof.exact_busy) record.device_busy_ns = took;
        if (!proof.exposed_communication) {
            record.communication_ns.reset();
            record.communication_total_ns.reset();
        } else if (record.device_busy_ns && record.communication_ns) {
            // The CPU's own count takes waiting for other ranks for work.
            *record.device_busy_ns -= *record.communication_ns;
        }
        account_.add(record);
        recorder_->step(record);
        unsent_.pop_front();
    }
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
