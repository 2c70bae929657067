// SPDX-License-Identifier: Apache-2.0
// Counts of steps that were made before, on disk: counting runs the model on the CPU, which takes
// seconds, and a search on a simulated device starts dozens of runs of one model.
#pragma once

#include <optional>
#include <string>

#include "config/settings.h"
#include "engine/sim_model.h"

namespace saturate {

// What a count depends on: the job with its model, numerics and optimizer, and the program.
[[nodiscard]] std::string count_key(const Settings& settings);

// Nothing when it is not there or cannot be read.
[[nodiscard]] std::optional<StepCost> find_count(const std::string& key);
// A cache that cannot be written costs time, nothing else.
void keep_count(const std::string& key, const StepCost& cost);

}  // namespace saturate
