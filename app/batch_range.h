// SPDX-License-Identifier: Apache-2.0
// --min, --max and --step of the verbs that search a batch size.
#pragma once

#include "arguments.h"
#include "tuning/batch_size.h"

namespace saturate {

inline constexpr long kMostBatch = 10'000'000;

// What is not given stays as in `otherwise`. Throws UserError.
[[nodiscard]] BatchLimits batch_range(const Arguments& arguments, BatchLimits otherwise);

}  // namespace saturate
