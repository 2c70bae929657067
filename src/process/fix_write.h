// SPDX-License-Identifier: Apache-2.0
// The kept edits, written into the user's own files.
#pragma once

#include <filesystem>

#include "project/fix_patch.h"
#include "project/fix_plan.h"

namespace saturate {

// All of them or none; their old versions go below `backup`. Throws UserError, before anything is
// written, when one of them is no longer the file that was read.
void write_fixes(const FixPatch& patch, const FixQuestion& question,
                 const std::filesystem::path& backup);

}  // namespace saturate
