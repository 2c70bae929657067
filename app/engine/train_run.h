// SPDX-License-Identifier: Apache-2.0
// One training run from a configuration to a summary: what `train` does, once or for every point of
// a grid, and what a user's own program does with its own jobs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/trainer.h"
#include "telemetry/gpu_tally.h"
#include "workloads/registry.h"

namespace saturate {

struct TrainRequest {
    std::string config;
    std::optional<std::string> snapshot;  // a copy of it to read instead; paths count from config
    std::string device = "auto";
    TrainLimits limits;
    std::optional<std::string> resume;  // "auto" or a path
    std::vector<std::string> values;    // key=value, before the settings are read
    std::string output;                 // folder of the run; empty: a new one
    std::vector<std::string> command;   // as it was started, without `values`
    bool quiet = false;                 // no progress lines
    bool one_batch = false;             // the first batch again and again
    bool bare = false;                  // no evaluation, no checkpoint: a measurement
};

struct TrainOutcome {
    std::string folder;  // of the run record
    TrainResult result;
    Metric metric;
    BusyShare by_counters;  // the driver's, or those of a simulated device
    int ranks = 1;
    bool lost_rank = false;  // the process must end without waiting for its threads
};

// Talk goes to stderr. Throws UserError and MachineError of what ends a run before its first step.
[[nodiscard]] TrainOutcome run_training(const TrainRequest& request, const JobRegistry& jobs);

// "trained 12 epochs, 1536 steps in 12.3 s: ...", a few lines.
[[nodiscard]] std::string outcome_text(const TrainOutcome& outcome);
[[nodiscard]] Json outcome_json(const TrainOutcome& outcome);
[[nodiscard]] int outcome_status(const TrainOutcome& outcome);

}  // namespace saturate
