// SPDX-License-Identifier: Apache-2.0
// Which Python a command would run, so that its sources are parsed by the same version.
#pragma once

#include <string>
#include <vector>

namespace saturate {

// A path or name that can be started. From the command's own words: python, a virtual
// environment, a script's or torchrun's first line, a shell script's line; else python3 of PATH.
// Empty when there is none. Starts nothing.
[[nodiscard]] std::string find_interpreter(const std::vector<std::string>& command);

}  // namespace saturate
