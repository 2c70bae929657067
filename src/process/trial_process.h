// SPDX-License-Identifier: Apache-2.0
// One trial as a child process: started in a group of its own, watched through the run record that
// it writes, ended when its rate is known, its time is up or it hangs. Whatever happens to it is
// an outcome.
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
    std::string name;                  // what it is for, in lists of runs: "num_workers=4"
    std::filesystem::path run_folder;  // the run record it writes; not there yet
    std::filesystem::path log;         // its stdout and stderr
    double seconds = 10;               // of measured steps
    double seconds_max = 600;          // from start to end: what it knows by then counts
    double start_seconds_max = 300;    // until its first step (compiling takes its time)
    double silence_seconds_max = 120;  // without a step: it hangs
    double hopeless_below = 0;         // samples/s: one that stays below is ended early
    std::int64_t steps = 0;            // the command ends by itself: wait for it; 0: by rate
    std::int64_t least_steps = 0;      // not ended before, however well its rate is known
    std::int64_t ready_batches = 0;  // that its loader may have made while the first step took long
    double grace_seconds = 15;       // for its last checkpoint and the summary
    bool skip_first_epoch = false;   // it fills a cache: what is measured comes after it
    std::function<bool()> is_stopped;   // Ctrl-C of the search
    const WriteGuard* guard = nullptr;  // what it may not change; null: no such thing
};

[[nodiscard]] TrialResult run_trial_process(const TrialProcess& trial);

// What the end of a process means: by its status and by what it said.
[[nodiscard]] TrialOutcome outcome_of(int status, std::string_view log);
// What says why, of a log and the status that its process ended with: the last line with "error" in
// it, else that it crashed, else the last line that is not empty.
[[nodiscard]] std::string reason_in(std::string_view log, int status);

}  // namespace saturate
