// SPDX-License-Identifier: Apache-2.0
// Reads the git revision of the user's project from .git, for the run record, without running git.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace saturate {

// The revision of the repository that contains `folder`: 40 or 64 hex digits. nullopt: no
// repository, or no commit yet.
[[nodiscard]] std::optional<std::string> git_revision(std::filesystem::path folder);

}  // namespace saturate
