// SPDX-License-Identifier: Apache-2.0
// How busy the CPU cores were during the steps of a job, from the samples of its run record. The
// rules on loaders use it to estimate how many cores are free for more workers.
#pragma once

#include <cstddef>

#include "telemetry/record_reader.h"

namespace saturate {

struct CoreUse {
    struct Wish {
        int tasks = 1;  // our tasks that would run at the same time
        int cores = 1;  // cores that the job may use
    };

    double own = 0;      // cores that a process of the job used
    double queued = 0;   // cores that it also wanted but had to wait for
    double others = 0;   // cores that all others used, including other ranks
    double machine = 0;  // cores of the machine
    std::size_t n = 0;   // samples; 0: too few were taken, nothing is known

    // Returns the cores that our tasks would get: the free ones or a fair share of the machine,
    // whichever is more. If the job had to queue, the queueing time says how many others wanted
    // the cores; the cores that they used would be too low an estimate.
    [[nodiscard]] double usable(const Wish& wish) const;
};

[[nodiscard]] CoreUse core_use(const RunRecord& record);

}  // namespace saturate
