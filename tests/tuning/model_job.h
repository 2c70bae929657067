// SPDX-License-Identifier: Apache-2.0
// A model of a job for tests of the search: step time, loading and memory are functions of the
// settings, with noise from a seed. The real engine is not involved.
#pragma once

#include <algorithm>
#include <random>

#include "base/text.h"
#include "tuning/moves.h"
#include "tuning/trial.h"

namespace saturate {

struct ModelJob {
    double step_fixed = 0.004;   // seconds per step
    double per_sample = 0.0002;  // seconds of the device per sample
    double fetch = 0.002;        // seconds of one core per sample
    int cores = 8;
    double bf16_factor = 0.6;  // factor on per_sample
    double channels_last_factor = 0.85;
    double curve = 0;  // relative growth of per_sample per 1000 of batch size
    double memory_fixed = 1e9;
    double memory_per_sample = 20e6;
    double memory_limit = 16e9;
    double noise = 0.005;
    mutable std::mt19937 random{7};
    mutable int trials = 0;

    [[nodiscard]] double rate(const Assignment& s, bool without_loader = false) const {
        auto number = [&](const char* key, double otherwise) {
            return parse_number(value_of(s, key)).value_or(otherwise);
        };
        double batch = number("batch_size", 32);
        double each = per_sample * (1 + curve * batch / 1000);
        if (value_of(s, "precision") == "bf16") each *= bf16_factor;
        if (value_of(s, "channels_last") == "true") each *= channels_last_factor;
        double compute = step_fixed + each * batch;
        if (without_loader) return batch / compute;
        double workers = number("num_workers", 0);
        if (workers == 0) return batch / (compute + fetch * batch);
        double load = fetch * batch / std::min(workers, static_cast<double>(cores));
        // With more workers than cores, workers take time from the thread that drives the device.
        double crowd = workers > cores ? 1 + 0.1 * (workers - cores) : 1;
        return batch / std::max(compute * crowd, load * crowd);
    }

    [[nodiscard]] TrialResult run(const TrialRequest& request, const Assignment& start) const {
        ++trials;
        Assignment s = start;
        for (const auto& [key, value] : request.settings) s[key] = value;
        double batch = parse_number(value_of(s, "batch_size")).value_or(32);
        TrialResult out{.seconds = 8};
        out.memory_limit_bytes = static_cast<std::uint64_t>(memory_limit);
        double memory = memory_fixed + memory_per_sample * batch;
        if (memory > memory_limit) {
            out.outcome = TrialOutcome::out_of_memory;
            out.message = "out of memory";
            return out;
        }
        out.memory_peak_bytes = static_cast<std::uint64_t>(memory);
        std::normal_distribution<double> wobble(1, noise);
        double median = rate(s, request.without_loader) * wobble(random);
        Rate r{.per_second = median,
               .low = median * (1 - noise),
               .high = median * (1 + noise),
               .n = 8,
               .steps = 100};
        r.step_seconds = batch / median;
        r.input_wait_share =
            request.without_loader ? 0 : std::max(0.0, 1 - rate(s) / rate(s, true));
        out.samples_per_second = r;
        return out;
    }
};

}  // namespace saturate
