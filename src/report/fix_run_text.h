// SPDX-License-Identifier: Apache-2.0
// The text of `fix` about the watched run: why the job is slow, or why the run could not be watched
// and what to do about it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/finding.h"
#include "tuning/trial.h"

namespace saturate {

// For a run with a rate: returns the causes found, the largest first, at most four.
[[nodiscard]] std::string fix_why_text(const Rate& rate, const std::vector<Finding>& findings);

// For a run without a rate: returns what happened, the last lines of the script and what to do.
// `has_gpu`: this machine has a GPU.
[[nodiscard]] std::string fix_failure_text(const TrialResult& job, std::string_view log,
                                           bool has_gpu = false);

}  // namespace saturate
