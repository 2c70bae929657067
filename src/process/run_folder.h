// SPDX-License-Identifier: Apache-2.0
// The default folder for runs: one folder for all verbs, and one way to name the runs in it.
#pragma once

#include <filesystem>
#include <string_view>

namespace saturate {

// In the current folder, ignored by git.
inline constexpr std::string_view kRunsFolder = "saturate-runs";

// Makes a new, empty folder saturate-runs/<name>-<time>. It is unique even if another process
// starts in the same second. A folder that is still empty when the process ends is removed. Throws
// UserError if the folder cannot be made.
[[nodiscard]] std::filesystem::path new_run_folder(std::string_view name);

}  // namespace saturate
