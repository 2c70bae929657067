// SPDX-License-Identifier: Apache-2.0
#include "engine/tally.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace saturate {

void Thinned::add(float value) {
    if (n_++ % stride_ != 0) return;
    values_.push_back(value);
    if (values_.size() < kMost) return;
    for (std::size_t i = 0; i < kMost / 2; ++i) values_[i] = values_[2 * i];
    values_.resize(kMost / 2);
    stride_ *= 2;
}

std::optional<double> Thinned::quantile(double share) const {
    if (values_.empty()) return std::nullopt;
    std::vector<float> sorted = values_;
    auto at = static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5);
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(at),
                     sorted.end());
    return sorted[at];
}

std::optional<Spread> Thinned::spread() const {
    if (values_.empty()) return std::nullopt;
    return Spread{
        .median = *quantile(0.5), .low = *quantile(0.05), .high = *quantile(0.95), .n = n_};
}

double StepSums::samples_per_second() const {
    return duration_ns > 0 ? static_cast<double>(samples) * 1e9 / static_cast<double>(duration_ns)
                           : 0;
}

double StepSums::share(std::int64_t part_ns) const {
    if (duration_ns <= 0) return 0;
    // The host runs ahead: what it gave the device in one interval may run in the next.
    return std::min(100.0, 100.0 * static_cast<double>(part_ns) / static_cast<double>(duration_ns));
}

void StepTotals::add(const StepRecord& record) {
    for (StepSums* sums : {&all_, &interval_}) {
        ++sums->steps;
        sums->samples += record.samples.value_or(0);
        sums->duration_ns += record.duration_ns;
        sums->input_wait_ns += record.input_wait_ns.value_or(0);
        sums->copy_ns += record.copy_ns.value_or(0);
        sums->busy_ns += record.device_busy_ns.value_or(0);
        sums->log_ns += record.log_ns.value_or(0);
        sums->communication_ns += record.communication_ns.value_or(0);
    }
    durations_ms_.add(static_cast<float>(record.duration_ns) / 1e6f);
}

StepSums StepTotals::take_interval() {
    StepSums out = std::exchange(interval_, {});
    if (out.steps > 0) {
        rates_.add(static_cast<float>(out.samples_per_second()));
        constexpr std::size_t kMost = 1 << 16;
        if (out.busy_ns > 0 && busy_.size() < kMost) busy_.push_back(out.share(out.busy_ns));
    }
    return out;
}

void StepTotals::fill(RunSummary& summary) const {
    summary.steps = all_.steps;
    summary.samples = all_.samples;
    summary.samples_per_second = rates_.spread();
    summary.step_p50_ms = durations_ms_.quantile(0.5);
    summary.step_p99_ms = durations_ms_.quantile(0.99);
    if (all_.busy_ns > 0) summary.busy_percent = all_.share(all_.busy_ns);
    if (busy_.size() > 1) {
        double mean = 0, squares = 0;
        for (double value : busy_) mean += value / static_cast<double>(busy_.size());
        for (double value : busy_) squares += (value - mean) * (value - mean);
        summary.busy_deviation = std::sqrt(squares / static_cast<double>(busy_.size()));
    }
    if (all_.duration_ns > 0) {
        summary.stall_percent = {{"input_wait", all_.share(all_.input_wait_ns)},
                                 {"copy", all_.share(all_.copy_ns)},
                                 {"log", all_.share(all_.log_ns)}};
        if (all_.communication_ns > 0)
            summary.stall_percent.emplace_back("communication", all_.share(all_.communication_ns));
    }
}

}  // namespace saturate
