// SPDX-License-Identifier: Apache-2.0
// Whether a trial of somebody else's command ran with what was asked for. Its record is the only
// witness: what it does not show was not in force, and no rate is credited to it. Pure.
#pragma once

#include <optional>
#include <string>

#include "tuning/trial.h"

namespace saturate {

// "num_workers=4 is not in force: the loader has 8"; nothing when all of `asked` is.
[[nodiscard]] std::optional<std::string> not_in_force(const Assignment& asked,
                                                      const RunRecord& record);

}  // namespace saturate
