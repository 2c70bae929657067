// SPDX-License-Identifier: Apache-2.0
// Runs a command under watch, from outside and, where it is Python with torch, from inside, and
// writes its run record. What `run` does between its arguments and its words; `tune` calls it for a
// trial.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/record.h"
#include "telemetry/step_sums.h"
#include "telemetry/summary.h"

namespace saturate {

struct RunJobSettings {
    std::vector<std::string> command;
    std::filesystem::path folder;  // of the record; new or empty
    std::string apply;  // changes for the shim to make: "safe", "num_workers=4,tf32"; empty: none
    bool with_profile = true;
    bool with_losses = false;  // also those on a GPU that the script does not read itself
    int profile_steps = 0;     // 0: as many as half a second holds
    double seconds = 0;        // ends the command after this long; 0: no limit
    std::int64_t steps = 0;    // ... or after so many training steps
    double interval_seconds = 1;
    bool output_to_stderr = false;  // the command's stdout
};

struct RunJobResult {
    int status = 0;           // the command's: its exit code, or 128 + signal
    int signal = 0;           // that ended it; 0: none
    bool is_limited = false;  // we ended it, as asked for
    Summary summary;          // from outside
    RunSummary run;  // as in the record of the first rank; its rate is what a trial compares
    StepSums steps;  // of the first rank, without the warm-up
    std::vector<std::filesystem::path> records;  // one per rank, `folder` first
    Json python;  // what the shim told of the first rank (python.json); null: no Python that trains
    std::string torch;  // its version, once a process imported it; empty: none did
    std::vector<std::string> notes;
};

// Throws ChildNotStarted, UserError (the folder) and MachineError.
[[nodiscard]] RunJobResult run_job(const RunJobSettings& settings);

}  // namespace saturate
