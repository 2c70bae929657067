// SPDX-License-Identifier: Apache-2.0
// Runs one trial as a child process, in its own process group. Watches it through the run record
// that it writes, and ends it when its rate is known, its time is up or it hangs. Every ending is
// an outcome, not an error.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tuning/trial.h"

namespace saturate {

class WriteGuard;

struct TrialProcess {
    std::vector<std::string> command;
    std::string name;                   // shown in lists of runs: "num_workers=4"
    std::filesystem::path run_folder;   // run record that the trial writes; must not exist yet
    std::filesystem::path log;          // stdout and stderr
    double seconds = 10;                // measured steps, in seconds
    double seconds_max = 600;           // whole run; what is known by then counts
    double start_seconds_max = 300;     // until the first step (compiling takes time)
    double silence_seconds_max = 120;   // this long without a step: it hangs
    double hopeless_below = 0;          // samples/s: ends a run whose rate stays below this
    std::int64_t steps = 0;             // the command ends after this many steps; 0: ends by rate
    std::int64_t least_steps = 0;       // no earlier end, even if the rate is known
    std::int64_t ready_batches = 0;     // that the loader may prepare during a slow first step
    double grace_seconds = 15;          // time for the last checkpoint and the summary
    bool skip_first_epoch = false;      // it fills a cache; measure after it
    std::function<bool()> is_stopped;   // Ctrl-C of the search
    const WriteGuard* guard = nullptr;  // limits what the trial may change; null: no limits
};

[[nodiscard]] TrialResult run_trial_process(const TrialProcess& trial);

// Judges the end of a process by its status and its log.
[[nodiscard]] TrialOutcome outcome_of(int status, std::string_view log);
// The reason for a failure, from the log and the status: the last exception, else the last line
// with "error", else the crash, else the last line that is not empty.
[[nodiscard]] std::string reason_in(std::string_view log, int status);

}  // namespace saturate
