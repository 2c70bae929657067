// SPDX-License-Identifier: Apache-2.0
// A disk cache of counted steps. Counting runs the model on the CPU, which takes seconds, and a
// search on a simulated device starts dozens of runs of one model.
#pragma once

#include <optional>
#include <string>

#include "config/settings.h"
#include "engine/sim_model.h"

namespace saturate {

// The cache key: everything a count depends on, i.e. the job with its model, numerics and
// optimizer, and this program.
[[nodiscard]] std::string count_key(const Settings& settings);

// Returns nothing if there is no such count or it cannot be read.
[[nodiscard]] std::optional<StepCost> find_count(const std::string& key);
// Failing to write the cache only costs time.
void keep_count(const std::string& key, const StepCost& cost);

}  // namespace saturate
