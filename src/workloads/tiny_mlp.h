// SPDX-License-Identifier: Apache-2.0
// The smallest job: two hidden layers on numbers made in memory, nothing to read. A step costs a
// few dozen microseconds, so it shows what the engine itself costs; tests and bench/step use it.
#pragma once

#include <memory>

#include "config/settings.h"
#include "engine/job.h"

namespace saturate {

// 32 inputs, `hidden_size` wide (64), one output; `dataset_size` samples (4096).
[[nodiscard]] std::unique_ptr<Job> tiny_mlp_job(std::int64_t hidden_size);

}  // namespace saturate
