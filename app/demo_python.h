// SPDX-License-Identifier: Apache-2.0
// `demo` without a job: `fix` on the small project of examples/pictures, where a Python with
// PyTorch is at hand.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace saturate {

// The first of $SATURATE_PYTHON, the one on PATH and the tests' own that has torch.
[[nodiscard]] std::optional<std::string> python_with_torch();

// Lays the project out below `folder`, makes its pictures and runs fix there; its exit code.
int demo_python(const std::string& python, const std::filesystem::path& folder, bool json);

}  // namespace saturate
