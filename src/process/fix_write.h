// SPDX-License-Identifier: Apache-2.0
// Writes the kept edits into the user's own files.
#pragma once

#include <filesystem>

#include "project/fix_patch.h"
#include "project/fix_plan.h"

namespace saturate {

// Writes all files or none, with the old versions below `backup`. If one of them changed since it
// was read, throws UserError before it writes anything.
void write_fixes(const FixPatch& patch, const FixQuestion& question,
                 const std::filesystem::path& backup);

}  // namespace saturate
