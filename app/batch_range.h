// SPDX-License-Identifier: Apache-2.0
// The options --min, --max and --step of the verbs that search for a batch size.
#pragma once

#include "arguments.h"
#include "tuning/batch_size.h"

namespace saturate {

inline constexpr long kMostBatch = 10'000'000;

// Returns the limits; values that are not given come from `otherwise`. Throws UserError.
[[nodiscard]] BatchLimits batch_range(const Arguments& arguments, BatchLimits otherwise);

}  // namespace saturate
