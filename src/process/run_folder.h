// SPDX-License-Identifier: Apache-2.0
// Where runs write when nobody says: one folder for all verbs, one way to name what is in it.
#pragma once

#include <filesystem>
#include <string_view>

namespace saturate {

// Beside the user's files, and not among what git sees.
inline constexpr std::string_view kRunsFolder = "saturate-runs";

// A new, empty folder saturate-runs/<name>-<time>, this process's own also when another one starts
// in the same second. One that is still empty at the end of the process is taken away. Throws
// UserError when none can be made here.
[[nodiscard]] std::filesystem::path new_run_folder(std::string_view name);

}  // namespace saturate
