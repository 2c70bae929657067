// SPDX-License-Identifier: Apache-2.0
// What every record begins with, whichever verb writes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "telemetry/record.h"

namespace saturate {

// A run of this process that starts now in this folder; `version` is the program's.
[[nodiscard]] RunInfo started_run(std::string kind, std::vector<std::string> command,
                                  std::string_view version);

}  // namespace saturate
