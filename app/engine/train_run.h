// SPDX-License-Identifier: Apache-2.0
// One training run from a configuration to a summary. `train` calls it once or for every point of a
// grid; a user's own program calls it with its own jobs.
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
    std::optional<std::string> snapshot;  // a copy to read instead; paths stay relative to config
    std::string device = "auto";
    TrainLimits limits;
    std::optional<std::string> resume;  // "auto" or a path
    std::vector<std::string> values;    // key=value, applied before the settings are read
    std::string output;                 // folder of the run; empty: create one
    std::vector<std::string> command;   // command line without `values`
    bool quiet = false;                 // no progress lines
    bool one_batch = false;             // trains on the first batch again and again
    bool bare = false;                  // for measurements: no evaluation, no checkpoints
};

struct TrainOutcome {
    std::string folder;  // of the run record
    TrainResult result;
    Metric metric;
    BusyShare by_counters;  // of the driver, or of a simulated device
    int ranks = 1;
    bool lost_rank = false;  // the process must exit without waiting for its threads
};

// Progress goes to stderr. Throws UserError or MachineError if the run cannot start.
[[nodiscard]] TrainOutcome run_training(const TrainRequest& request, const JobRegistry& jobs);

// Returns a few lines: "trained 12 epochs, 1536 steps in 12.3 s: ...".
[[nodiscard]] std::string outcome_text(const TrainOutcome& outcome);
[[nodiscard]] Json outcome_json(const TrainOutcome& outcome);
[[nodiscard]] int outcome_status(const TrainOutcome& outcome);

}  // namespace saturate
