// SPDX-License-Identifier: Apache-2.0
// Proposes a batch size at the place where the source declares it, with the matching learning rate.
// Only trials show the best size, so the caller names the size.
#pragma once

#include "project/fix_plan.h"

namespace saturate {

struct BatchPlace {
    std::int64_t size = 0;  // current size; 0: it cannot be changed
    std::string why;        // why it cannot be changed
};
[[nodiscard]] BatchPlace batch_place(const ProjectFacts& facts, const FixQuestion& question);

// Needs a size from batch_place(). The learning rate follows by the rule of the optimizer.
[[nodiscard]] std::optional<FixProposal> batch_proposal(const ProjectFacts& facts,
                                                        const FixQuestion& question,
                                                        std::int64_t size);

}  // namespace saturate
