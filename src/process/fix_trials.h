// SPDX-License-Identifier: Apache-2.0
// Tries the proposals of a fix on the user's own command, each in a scratch tree, keeps what helps,
// and proves the whole against the job as it is, in turns.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "project/fix_answer.h"
#include "tuning/proof.h"
#include "tuning/trial.h"

namespace saturate {

struct FixTrialSettings {
    std::vector<std::string> command;
    std::filesystem::path output;  // records and logs of the trials go below it
    double budget_seconds = 600;
    bool has_gpu = false;
    std::function<void(const std::string&)> on_line;  // may be null
};

struct FixTrials {
    TrialResult baseline;
    std::string baseline_log;  // its file
    int trials = 0;
    double seconds = 0;
    std::optional<Proof> proof;
    std::string unguarded;  // what the trials could have changed; empty: nothing
    bool is_stopped = false;
};

// Fills in the outcomes and leaves in `answer.patch` what was kept. A job that does not run as it
// is ends it: `baseline` says why.
[[nodiscard]] FixTrials try_fixes(FixAnswer& answer, ProjectReader& reader,
                                  const FixQuestion& question, const FixTrialSettings& settings);

// Writes the kept edits into the user's files and their old versions below `backup`. Throws
// UserError, before anything is written, when one of them is no longer the file that was read.
void write_fixes(const FixPatch& patch, const FixQuestion& question,
                 const std::filesystem::path& backup);

}  // namespace saturate
