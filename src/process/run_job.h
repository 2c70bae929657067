// SPDX-License-Identifier: Apache-2.0
// Runs a command and watches it from outside and, if it is Python with torch, from inside. Writes
// the run record. This is the core of `run`; `tune` uses it for trials.
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
    std::filesystem::path folder;  // folder of the record; new or empty
    std::string apply;  // changes for the shim to make: "safe", "num_workers=4,tf32"; empty: none
    bool with_profile = true;
    bool with_losses = false;  // also losses on a GPU that the script does not read itself
    int profile_steps = 0;     // 0: as many as fit into half a second
    double seconds = 0;        // ends the command after this long; 0: no limit
    std::int64_t steps = 0;    // ends the command after this many training steps; 0: no limit
    double interval_seconds = 1;
    bool output_to_stderr = false;  // the command's stdout
};

struct RunJobResult {
    int status = 0;           // the command's exit code, or 128 + signal
    int signal = 0;           // the signal that ended it; 0: none
    bool is_limited = false;  // we ended the command at its limit
    Summary summary;          // seen from outside
    RunSummary run;           // as in the record of the first rank; trials compare its rate
    StepSums steps;           // of the first rank, without the warm-up
    std::vector<std::filesystem::path> records;  // one per rank, `folder` first
    Json python;        // the shim's facts on the first rank (python.json); null: no Python trained
    std::string torch;  // version, if a process imported torch; else empty
    std::vector<std::string> notes;
};

// Throws ChildNotStarted, UserError (about the folder) and MachineError.
[[nodiscard]] RunJobResult run_job(const RunJobSettings& settings);

}  // namespace saturate
