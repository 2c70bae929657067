// SPDX-License-Identifier: Apache-2.0
// Builds the command line of a trial: `train` with a configuration, or the user's own command under
// `run`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "process/scratch_tree.h"
#include "tuning/conductor.h"

namespace saturate {

[[nodiscard]] std::vector<std::string> trial_command(const TuneRequest& request,
                                                     const TrialRequest& wanted,
                                                     const std::filesystem::path& run);

// The path of this run's copy of the command's configuration: "trial-3.yaml" next to "trial-3".
[[nodiscard]] std::filesystem::path trial_config(const TuneRequest& request,
                                                 const std::filesystem::path& run);

// The last words of that command line: the user's command as it runs in a tree of its project.
// Experiment trackers are disabled, so trials leave no runs there.
[[nodiscard]] std::vector<std::string> command_in_tree(const ScratchTree& tree,
                                                       const std::vector<std::string>& own);

// The configuration as it was when the search began. Every trial of `train` reads this copy.
[[nodiscard]] std::filesystem::path config_snapshot(const TuneRequest& request);

// How many steps the trial makes; 0: it runs until it is ended.
[[nodiscard]] std::int64_t trial_steps(const TrialRequest& wanted);

[[nodiscard]] std::string trial_name(const TrialRequest& wanted);  // "batch_size=64 precision=bf16"

}  // namespace saturate
