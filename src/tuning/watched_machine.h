// SPDX-License-Identifier: Apache-2.0
// Adds the results of a watched run to the facts about the machine: the loaders and optimizers that
// the job made, with their values, and how many workers and threads suit it. Pure.
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
