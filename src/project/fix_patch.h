// SPDX-License-Identifier: Apache-2.0
// Proposals turned into files and a patch. Each edit is made alone first and proven; what cannot be
// done exactly is refused with the reason.
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
    std::string problem;                     // why they cannot be made together; empty: they can
    [[nodiscard]] std::string text() const;  // for `git apply` and `patch -p1`
};

// Moves proposals whose edit cannot be proven, or that meet another's, to the refusals; what is
// left can be made together.
void keep_exact(ProjectReader& reader, const ProjectFacts& facts, const FixQuestion& question,
                FixPlan& plan);

// These proposals together.
[[nodiscard]] FixPatch make_patch(ProjectReader& reader, const ProjectFacts& facts,
                                  const FixQuestion& question,
                                  const std::vector<const FixProposal*>& proposals);

}  // namespace saturate
