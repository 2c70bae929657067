// SPDX-License-Identifier: Apache-2.0
// The revision of the user's project, for the run record: read from .git, without running git.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace saturate {

// Of the repository that `folder` lies in: 40 or 64 hex digits. nullopt: none, or no commit yet.
[[nodiscard]] std::optional<std::string> git_revision(std::filesystem::path folder);

}  // namespace saturate
