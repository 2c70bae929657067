// SPDX-License-Identifier: Apache-2.0
// Counts what a step computes while it runs on the CPU: arithmetic, memory traffic and operators,
// using LibTorch's record of calls. Training thread; one count at a time.
#pragma once

#include <functional>

#include "engine/sim_model.h"

namespace saturate {

// `run` does a whole step with the given number of samples. It is run with two small sizes; the
// difference is what grows with the batch.
[[nodiscard]] StepCost count_step(const std::function<void(std::int64_t samples)>& run,
                                  std::int64_t samples_most);

}  // namespace saturate
