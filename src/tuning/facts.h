// SPDX-License-Identifier: Apache-2.0
// What the search starts from: the configuration's values by canonical name, and what the machine
// allows.
#pragma once

#include <optional>

#include "config/settings.h"
#include "probe/gpu_table.h"
#include "probe/machine.h"
#include "tuning/moves.h"

namespace saturate {

// Every setting that the file names, in the words of `train --set`.
[[nodiscard]] Assignment values_in_force(const Settings& settings);

// `gpu` absent: the CPU trains.
[[nodiscard]] TuningFacts tuning_facts(const Settings& settings, const CpuFacts& cpu,
                                       const MemoryFacts& memory,
                                       const std::optional<GpuFacts>& gpu, Level level);

}  // namespace saturate
