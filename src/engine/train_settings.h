// SPDX-License-Identifier: Apache-2.0
// A configuration's settings as the trainer needs them: typed, with defaults, checked together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "engine/device_backend.h"
#include "engine/schedule.h"
#include "engine/step.h"

namespace saturate {

// Given on the command line; each replaces what the configuration says about how long to train.
struct TrainLimits {
    std::optional<std::int64_t> epochs, steps;
    std::optional<double> seconds;
    int ranks = 1;  // that global_batch_size is divided by
};

// Batches that are loaded ahead may take this part of the memory: 64 workers would fill it.
inline constexpr std::uint64_t kPrefetchShare = 8;

struct TrainSettings {
    std::int64_t batch_size = 32;
    std::int64_t eval_batch_size = 32;
    std::int64_t accumulation = 1;
    int workers = -1;  // -1: auto
    int cores = 0;     // of this process; 0: those of its affinity mask
    int prefetch_factor = 2;
    std::uint64_t memory_bytes = 0;  // of the host, for this process; 0: as much as there is
    std::int64_t bad_samples_max = 100;
    std::uint64_t seed = 0;

    StepSettings step;  // its precision is still to be resolved
    std::optional<PrecisionWish> precision_wish;
    bool precision_auto = false;  // "auto": the best of the device
    std::string compile = "off";  // off, default, reduce-overhead, max-autotune
    Schedule schedule;            // its totals are filled by the trainer
    std::int64_t schedule_step_epochs = 30;
    double ema = 0;
    bool can_recompute = false;  // gradient_checkpointing is off, and the job would know it

    std::optional<std::int64_t> epochs, steps;  // the first that is reached ends the run
    std::optional<double> seconds;
    std::int64_t log_interval = 50;
    std::int64_t eval_epochs = 1, eval_steps = 0;  // 0: not by that
    std::int64_t checkpoint_epochs = 1, checkpoint_steps = 0;
    std::int64_t checkpoint_keep = 3;
    std::int64_t early_stopping = 0;

    ReducerSettings reducer;       // of several ranks
    std::int64_t check_ranks = 0;  // steps between two comparisons of weights; 0: at the start

    DeviceOptions device;
    bool one_batch = false;               // the first batch again and again: what the loader costs
    std::vector<std::string> set_values;  // key=value of the command line, kept in checkpoints
    std::vector<std::string> notes;       // settings that have no effect here, for the user
};

// Throws UserError with every value that cannot be meant.
[[nodiscard]] TrainSettings train_settings(const Settings& settings, const TrainLimits& limits);

struct ResolvedPrecision {
    Precision precision = Precision::fp32;
    std::string note;  // what was resolved, and why, for the log
};
[[nodiscard]] ResolvedPrecision resolve_precision(const TrainSettings& settings,
                                                  const DeviceBackend& backend);

}  // namespace saturate
