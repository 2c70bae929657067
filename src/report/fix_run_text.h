// SPDX-License-Identifier: Apache-2.0
// The text of `fix` about the watched run: why the job is slow, or why the run could not be watched
// and what to do about it; and what a longer budget would add.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/finding.h"
#include "project/fix_answer.h"
#include "tuning/proof.h"
#include "tuning/trial.h"

namespace saturate {

// For a run with a rate: returns the causes found, the largest first, at most four.
[[nodiscard]] std::string fix_why_text(const Rate& rate, const std::vector<Finding>& findings);

// For a run without a rate: returns what happened, the last lines of the script and what to do.
// `has_gpu`: this machine has a GPU.
[[nodiscard]] std::string fix_failure_text(const TrialResult& job, std::string_view log,
                                           bool has_gpu = false);

// What was not tried or not proven for lack of time, and the command that has the time for it; "" if
// nothing was left. `with_budget` returns the user's command with another budget.
[[nodiscard]] std::string with_more_time_text(
    const FixAnswer& answer, const Proof* proof,
    const std::function<std::string(const std::string& budget)>& with_budget);

}  // namespace saturate
