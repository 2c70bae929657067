// SPDX-License-Identifier: Apache-2.0
// The answer of `optimize`, as text and as JSON.
#pragma once

#include <string>

#include "base/json.h"
#include "optimize_plan.h"

namespace saturate {

[[nodiscard]] std::string optimize_text(const OptimizePlan& plan);
// `output`: the file that was written, or "". docs/json.md, section optimize.
[[nodiscard]] Json optimize_json(const OptimizePlan& plan, const std::string& output);

}  // namespace saturate
