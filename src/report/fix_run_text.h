// SPDX-License-Identifier: Apache-2.0
// What `fix` says of the watched run to a person: why the job is slow, or why it could not be
// watched and what to do about it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/finding.h"
#include "tuning/trial.h"

namespace saturate {

// Of a run that has a rate: the causes that were seen, the largest first, four at most.
[[nodiscard]] std::string fix_why_text(const Rate& rate, const std::vector<Finding>& findings);

// Of one that has none: what happened, the script's own last lines, and what to do. `has_gpu`: this
// machine has one.
[[nodiscard]] std::string fix_failure_text(const TrialResult& job, std::string_view log,
                                           bool has_gpu = false);

}  // namespace saturate
