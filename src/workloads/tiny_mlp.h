// SPDX-License-Identifier: Apache-2.0
// The smallest job: two hidden layers on numbers made in memory, nothing to read. A step takes a
// few dozen microseconds, so it shows the overhead of the engine; tests and bench/step use it.
#pragma once

#include <memory>

#include "config/settings.h"
#include "engine/job.h"

namespace saturate {

// A network with 32 inputs, two layers of `hidden_size` (default 64), one output; `dataset_size`
// samples (4096).
[[nodiscard]] std::unique_ptr<Job> tiny_mlp_job(std::int64_t hidden_size);

}  // namespace saturate
