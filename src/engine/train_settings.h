// SPDX-License-Identifier: Apache-2.0
// The settings of a configuration in the form the trainer needs: typed, with
// defaults, checked together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "engine/device_backend.h"
#include "engine/schedule.h"
#include "engine/step.h"

namespace saturate {

// Limits from the command line; each replaces the configuration's value.
struct TrainLimits {
    std::optional<std::int64_t> epochs, steps;
    std::optional<double> seconds;
    int ranks = 1;  // to divide global_batch_size by
};

// Batches loaded ahead may take one part in this many of the memory: 64 workers would fill it.
inline constexpr std::uint64_t kPrefetchShare = 8;

struct TrainSettings {
    std::int64_t batch_size = 32;
    std::int64_t eval_batch_size = 32;
    std::int64_t accumulation = 1;
    int workers = -1;  // -1: auto
    int cores = 0;     // of this process; 0: those of its affinity mask
    int prefetch_factor = 2;
    std::uint64_t memory_bytes = 0;  // host memory this process may use; 0: all of it
    std::int64_t bad_samples_max = 100;
    std::uint64_t seed = 0;

    StepSettings step;  // its precision is resolved later
    std::optional<PrecisionWish> precision_wish;
    bool precision_auto = false;  // "auto": the best the device has
    std::string compile = "off";  // off, default, reduce-overhead, max-autotune
    Schedule schedule;            // the trainer fills in its totals
    std::int64_t schedule_step_epochs = 30;
    double ema = 0;
    bool can_recompute = false;  // gradient_checkpointing is off but the job supports it

    std::optional<std::int64_t> epochs, steps;  // the first one reached ends the run
    std::optional<double> seconds;
    std::int64_t log_interval = 50;
    std::int64_t eval_epochs = 1, eval_steps = 0;  // 0: never
    std::int64_t checkpoint_epochs = 1, checkpoint_steps = 0;
    std::int64_t checkpoint_keep = 3;
    std::int64_t early_stopping = 0;

    ReducerSettings reducer;       // for several ranks
    std::int64_t check_ranks = 0;  // steps between comparisons of weights; 0: only at the start

    DeviceOptions device;
    bool one_batch = false;               // repeat the first batch, to show what loading costs
    std::vector<std::string> set_values;  // key=value from the command line, kept in checkpoints
    std::vector<std::string> notes;       // for the user: settings without effect here
};

// Throws UserError with every invalid value.
[[nodiscard]] TrainSettings train_settings(const Settings& settings, const TrainLimits& limits);

struct ResolvedPrecision {
    Precision precision = Precision::fp32;
    std::string note;  // for the log: what was chosen, and why
};
[[nodiscard]] ResolvedPrecision resolve_precision(const TrainSettings& settings,
                                                  const DeviceBackend& backend);

}  // namespace saturate
