// SPDX-License-Identifier: Apache-2.0
#include "telemetry/step_tally.h"

#include <algorithm>
#include <cmath>

namespace saturate {

namespace {

constexpr double kLeast = 1e-3;
const double kStep = std::log(1.01);
constexpr std::int64_t kEnough = 20;

}  // namespace

void LogHistogram::add(double value) {
    if (!(value > 0)) return;
    auto bin = static_cast<int>(std::log(std::max(value, kLeast) / kLeast) / kStep);
    ++counts_[static_cast<std::size_t>(std::clamp(bin, 0, kBins - 1))];
    ++n_;
}

std::optional<double> LogHistogram::quantile(double share) const {
    if (n_ == 0) return std::nullopt;
    auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(n_)));
    std::int64_t sum = 0;
    for (std::size_t bin = 0; bin < counts_.size(); ++bin) {
        sum += counts_[bin];
        if (sum >= std::max<std::int64_t>(wanted, 1))
            return kLeast * std::exp((static_cast<double>(bin) + 0.5) * kStep);
    }
    return std::nullopt;
}

void StepTally::time(const StepRecord& step) {
    durations_.add(static_cast<double>(step.duration_ns));
    timed_ns_ += static_cast<double>(step.duration_ns);
    if (step.samples && step.duration_ns > 0)
        rates_.add(1e9 * static_cast<double>(*step.samples) /
                   static_cast<double>(step.duration_ns));
    if (step.input_wait_ns) {
        wait_ns_ += static_cast<double>(*step.input_wait_ns);
        knows_wait_ = true;
    }
    if (step.synchronisation_ns) {
        read_ns_ += static_cast<double>(*step.synchronisation_ns);
        knows_read_ = true;
    }
}

void StepTally::add(const StepRecord& step) {
    if (steps_ < static_cast<std::int64_t>(first_.size()))
        first_[static_cast<std::size_t>(steps_)] = step;
    else if (!is_disturbed_)
        time(step);
    ++steps_;
    samples_ += step.samples.value_or(0);
}

std::optional<double> StepTally::step_ms() const {
    auto median = durations_.quantile(0.5);
    return median ? std::optional(*median / 1e6) : std::nullopt;
}

void StepTally::fill(RunSummary& summary) const {
    summary.steps = steps_;
    if (samples_ > 0) summary.samples = samples_;
    StepTally all = *this;
    if (steps_ <= kEnough) {  // too few to leave any out
        for (std::int64_t i = 0; i < std::min<std::int64_t>(steps_, 5); ++i)
            all.time(first_[static_cast<std::size_t>(i)]);
    }
    if (auto median = all.rates_.quantile(0.5)) {
        summary.samples_per_second = Spread{.median = *median,
                                            .low = *all.rates_.quantile(0.05),
                                            .high = *all.rates_.quantile(0.95),
                                            .n = all.rates_.n()};
    }
    summary.step_p50_ms = all.step_ms();
    if (auto slow = all.durations_.quantile(0.99)) summary.step_p99_ms = *slow / 1e6;
    if (all.timed_ns_ <= 0) return;
    if (all.knows_wait_)
        summary.stall_percent.emplace_back("input_wait", 100.0 * all.wait_ns_ / all.timed_ns_);
    if (all.knows_read_)
        summary.stall_percent.emplace_back("synchronisation", 100.0 * all.read_ns_ / all.timed_ns_);
}

}  // namespace saturate
