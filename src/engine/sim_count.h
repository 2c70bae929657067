// SPDX-License-Identifier: Apache-2.0
// Counts what a step computes while it runs on the CPU: arithmetic, memory traffic and operators,
// through LibTorch's own record of calls. Training thread; one count at a time.
#pragma once

#include <functional>

#include "engine/sim_model.h"

namespace saturate {

// `run` does a whole step with so many samples. It is run with two small sizes; what differs grows
// with the batch.
[[nodiscard]] StepCost count_step(const std::function<void(std::int64_t samples)>& run,
                                  std::int64_t samples_most);

}  // namespace saturate
