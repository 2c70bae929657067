// SPDX-License-Identifier: Apache-2.0
// Tries the proposals of `fix` on the user's own command, each in a scratch tree. Keeps what helps,
// then proves all kept changes together against the unchanged job, in turns.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/finding.h"
#include "process/scratch_tree.h"
#include "project/fix_answer.h"
#include "tuning/batch_size.h"
#include "tuning/loss_guard.h"
#include "tuning/measured_job.h"
#include "tuning/proof.h"
#include "tuning/trial.h"

namespace saturate {

struct FixTrialSettings {
    MeasuredJob job;               // a command with its project
    std::filesystem::path output;  // parent folder of the trials' records and logs
    double budget_seconds = 600;
    FixMachine machine = {};
    bool has_gpu = false;
    std::uint64_t device_memory_bytes = 0;  // of a GPU; 0: unknown
    BatchLimits batch = {.max = 4096};      // limits of the batch search at level training
    std::function<void(const std::string&)> on_line;  // may be null
    // What goes on, again and again; may be null.
    std::function<void(const std::string& what, double seconds)> on_working = {};
};

struct FixTrials {
    TrialResult baseline;
    std::vector<Finding> findings;  // why the job is slow, from the watched run
    std::string baseline_log;       // file name
    int trials = 0;
    double seconds = 0;
    std::optional<Proof> proof;
    LossCurve losses_before, losses_after;  // of one run each, if seen
    FilesMade files_made;                   // by the unchanged job, below the user's folder
    std::string busy;                       // other work on this machine; empty: little or none
    std::string unguarded;                  // what trials could have changed; empty: nothing
    std::vector<std::string> outside;       // folders elsewhere that the job writes to
    bool is_stopped = false;
    bool is_on_gpu = false;  // the watched run used a GPU
};

// Fills in the outcomes and puts the kept changes into `answer.patch`. If the unchanged job does
// not run, stops there: `baseline` says why.
[[nodiscard]] FixTrials try_fixes(FixAnswer& answer, ProjectReader& reader,
                                  const FixQuestion& question, const FixTrialSettings& settings);

}  // namespace saturate
