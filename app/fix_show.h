// SPDX-License-Identifier: Apache-2.0
// What `fix` tells after its trials: fix.json, the page, and the text for a terminal.
#pragma once

#include <filesystem>
#include <string>

#include "process/fix_trials.h"
#include "project/fix_answer.h"

namespace saturate {

struct TriedFix {
    const FixAnswer& answer;
    const FixTrials& tried;
    std::string command;              // the user's
    std::filesystem::path page;       // where it is written
    std::string with_more_time = {};  // of report/fix_run_text.h

    [[nodiscard]] const Proof* proof() const { return tried.proof ? &*tried.proof : nullptr; }
};

[[nodiscard]] Json fix_json(const TriedFix& fix);  // docs/json.md, section fix
[[nodiscard]] std::string fix_page(const TriedFix& fix);
// Prints the answer; `all`: long lists in full.
void show_fix(const TriedFix& fix, bool all);
// Prints why the job as it is does not run.
void show_failed_job(const FixTrials& tried, bool has_gpu);

}  // namespace saturate
