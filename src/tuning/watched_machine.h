// SPDX-License-Identifier: Apache-2.0
// What a watched run adds to what is known of the machine: which loaders and optimizers the job
// made, with which values, and how many workers and threads fit it. Pure.
#pragma once

#include <vector>

#include "diagnosis/finding.h"
#include "project/fix_plan.h"
#include "tuning/trial.h"

namespace saturate {

[[nodiscard]] FixMachine watched_machine(const FixMachine& machine, const ProjectFacts& facts,
                                         const TrialResult& watched,
                                         const std::vector<Finding>& findings);

}  // namespace saturate
