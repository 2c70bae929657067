// SPDX-License-Identifier: Apache-2.0
// The batch size where the source declares it, with the learning rate that follows it. Which size
// is best only trials tell, so the proposal is made for the size that is asked for.
#pragma once

#include "project/fix_plan.h"

namespace saturate {

struct BatchPlace {
    std::int64_t size = 0;  // as it is; 0: it cannot be changed
    std::string why;        // ... because
};
[[nodiscard]] BatchPlace batch_place(const ProjectFacts& facts, const FixQuestion& question);

// Only where batch_place() has a size. The learning rate follows by the rule of the optimizer.
[[nodiscard]] std::optional<FixProposal> batch_proposal(const ProjectFacts& facts,
                                                        const FixQuestion& question,
                                                        std::int64_t size);

}  // namespace saturate
