// SPDX-License-Identifier: Apache-2.0
// Turns proposals into edited files and a patch. Each edit is first made alone and verified. An
// edit that cannot be made exactly is refused with the reason.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "project/fix_plan.h"
#include "project/project_reader.h"

namespace saturate {

struct EditedFile {
    std::string file;  // relative to the folder the command runs in
    std::string before;
    std::string after;
};

struct FixPatch {
    std::vector<EditedFile> files;
    std::string problem;  // why the edits cannot be made together; empty: they can
    [[nodiscard]] std::string text() const;  // as `git apply` and `patch -p1` read it
};

// Moves a proposal to the refusals if its edit cannot be verified or conflicts with another one.
// The rest can be made together.
void keep_exact(ProjectReader& reader, const ProjectFacts& facts, const FixQuestion& question,
                FixPlan& plan);

// Makes the patch of these proposals together.
[[nodiscard]] FixPatch make_patch(ProjectReader& reader, const ProjectFacts& facts,
                                  const FixQuestion& question,
                                  const std::vector<const FixProposal*>& proposals);

}  // namespace saturate
