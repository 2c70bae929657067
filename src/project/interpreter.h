// SPDX-License-Identifier: Apache-2.0
// Finds the Python that a command would run, so that its sources are parsed by the same version.
#pragma once

#include <string>
#include <vector>

namespace saturate {

// Returns a path or name that can be started, or "" if there is none. Looks at the words of the
// command (python, a virtual environment, the first line of a script or of torchrun, a line of a
// shell script), then for python3 on PATH. Starts no process.
[[nodiscard]] std::string find_interpreter(const std::vector<std::string>& command);

}  // namespace saturate
