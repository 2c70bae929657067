// SPDX-License-Identifier: Apache-2.0
// `demo` without a job: runs `fix` on the small project of examples/pictures, if there is a Python
// with PyTorch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace saturate {

// Returns the first Python that has torch, of: $SATURATE_PYTHON, python3 and python on PATH, and
// those in python-torch* of the user's cache folder, which the tests create.
[[nodiscard]] std::optional<std::string> python_with_torch();

// Writes the project below `folder`, makes its pictures and runs fix there. Returns the exit code
// of fix.
int demo_python(const std::string& python, const std::filesystem::path& folder, bool json);

}  // namespace saturate
