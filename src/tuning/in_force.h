// SPDX-License-Identifier: Apache-2.0
// Checks that a trial of a user's command really ran with the requested settings. The record is the
// only evidence: a setting that it does not show was not in force and gets no rate. Pure.
#pragma once

#include <optional>
#include <string>

#include "tuning/trial.h"

namespace saturate {

// Returns "num_workers=4: the script has 8", or nothing if all of `asked` is in force.
[[nodiscard]] std::optional<std::string> not_in_force(const Assignment& asked,
                                                      const RunRecord& record);

}  // namespace saturate
