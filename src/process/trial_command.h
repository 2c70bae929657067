// SPDX-License-Identifier: Apache-2.0
// The command line that tries out settings: `train` with a configuration, or the user's own command
// under `run`.
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

// The copy of the command's configuration that this run reads: "trial-3.yaml" beside "trial-3".
[[nodiscard]] std::filesystem::path trial_config(const TuneRequest& request,
                                                 const std::filesystem::path& run);

// The user's command at the end of those words, as it runs in a tree of its project. Trackers of
// experiments get no runs from trials.
[[nodiscard]] std::vector<std::string> command_in_tree(const ScratchTree& tree,
                                                       const std::vector<std::string>& own);

// The configuration as it was when the search began; every trial of `train` reads this copy.
[[nodiscard]] std::filesystem::path config_snapshot(const TuneRequest& request);

// How many steps it makes; 0: until it is ended.
[[nodiscard]] std::int64_t trial_steps(const TrialRequest& wanted);

[[nodiscard]] std::string trial_name(const TrialRequest& wanted);  // "batch_size=64 precision=bf16"

}  // namespace saturate
