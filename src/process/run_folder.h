// SPDX-License-Identifier: Apache-2.0
// Where a run writes when nobody says.
#pragma once

#include <string>

namespace saturate {

// A folder for a run of this configuration that is not there yet: runs/<name>-<time>.
[[nodiscard]] std::string run_folder(const std::string& config);

}  // namespace saturate
