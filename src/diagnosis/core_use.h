// SPDX-License-Identifier: Apache-2.0
// Who used the cores while a job stepped, from the samples of its run record: what workers would
// find free. Called by the rules on loaders.
#pragma once

#include <cstddef>

#include "telemetry/record_reader.h"

namespace saturate {

struct CoreUse {
    struct Wish {
        int tasks = 1;  // of ours that would run at once
        int cores = 1;  // that the job may use
    };

    double own = 0;      // cores that one process of the job used
    double queued = 0;   // ... and would have used, had one been free
    double others = 0;   // ... and everybody else, other ranks too
    double machine = 0;  // that there are
    std::size_t n = 0;   // samples; 0: nobody looked long enough, nothing is known

    // What our tasks would get: what is free, or their fair share of the machine. Where we had to
    // queue, how long tells how many others wanted the cores; what they used would not.
    [[nodiscard]] double usable(const Wish& wish) const;
};

[[nodiscard]] CoreUse core_use(const RunRecord& record);

}  // namespace saturate
