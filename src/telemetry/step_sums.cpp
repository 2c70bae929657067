// SPDX-License-Identifier: Apache-2.0
#include "telemetry/step_sums.h"

#include <algorithm>

namespace saturate {

namespace {

struct SummedPart {
    std::string_view name;
    std::optional<std::int64_t> StepRecord::*member;
    double unit;  // the value of one, in seconds, bytes or collectives
};
constexpr double kNanosecond = 1e-9;
constexpr std::array<SummedPart, kStepParts> kParts = {{
    {"input_wait", &StepRecord::input_wait_ns, kNanosecond},
    {"copy", &StepRecord::copy_ns, kNanosecond},
    {"forward", &StepRecord::forward_ns, kNanosecond},
    {"backward", &StepRecord::backward_ns, kNanosecond},
    {"optimizer", &StepRecord::optimizer_ns, kNanosecond},
    {"communication", &StepRecord::communication_ns, kNanosecond},
    {"synchronisation", &StepRecord::synchronisation_ns, kNanosecond},
    {"log", &StepRecord::log_ns, kNanosecond},
    {"device_busy", &StepRecord::device_busy_ns, kNanosecond},
    {"communication_total", &StepRecord::communication_total_ns, kNanosecond},
    {"communication_bytes", &StepRecord::communication_bytes, 1},
    {"collectives", &StepRecord::collectives, 1},
}};

std::size_t index_of(StepPart part) { return static_cast<std::size_t>(part); }

}  // namespace

std::string_view part_name(StepPart part) { return kParts[index_of(part)].name; }

void StepSums::add(const StepRecord& step, double step_seconds) {
    ++steps;
    seconds += step_seconds;
    if (step.samples) {
        samples += *step.samples;
        sampled_seconds += step_seconds;
    }
    for (std::size_t i = 0; i < kStepParts; ++i) {
        const std::optional<std::int64_t>& value = step.*kParts[i].member;
        if (!value) continue;
        sums_[i] += kParts[i].unit * static_cast<double>(*value);
        ++told_[i];
    }
}

void StepSums::add(const StepSums& other) {
    steps += other.steps;
    samples += other.samples;
    seconds += other.seconds;
    sampled_seconds += other.sampled_seconds;
    for (std::size_t i = 0; i < kStepParts; ++i) {
        sums_[i] += other.sums_[i];
        told_[i] += other.told_[i];
    }
}

double StepSums::sum(StepPart part) const { return sums_[index_of(part)]; }
std::int64_t StepSums::told(StepPart part) const { return told_[index_of(part)]; }

std::optional<double> StepSums::percent(StepPart part) const {
    if (told(part) == 0 || seconds <= 0) return std::nullopt;
    return std::min(100.0, 100 * sum(part) / seconds);
}

std::optional<double> StepSums::samples_per_second() const {
    if (samples <= 0 || sampled_seconds <= 0) return std::nullopt;
    return static_cast<double>(samples) / sampled_seconds;
}

double StepSums::step_seconds() const {
    return steps > 0 ? seconds / static_cast<double>(steps) : 0;
}

}  // namespace saturate
