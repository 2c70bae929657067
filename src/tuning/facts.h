// SPDX-License-Identifier: Apache-2.0
// What the search starts from: what the machine and the configuration allow.
#pragma once

#include <optional>

#include "config/settings.h"
#include "probe/gpu_table.h"
#include "probe/machine.h"
#include "remedies/facts.h"
#include "tuning/moves.h"

namespace saturate {

// `gpu` absent: the CPU trains.
[[nodiscard]] TuningFacts tuning_facts(const Settings& settings, const CpuFacts& cpu,
                                       const MemoryFacts& memory,
                                       const std::optional<GpuFacts>& gpu, Level level);

}  // namespace saturate
