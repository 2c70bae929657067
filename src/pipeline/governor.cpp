// SPDX-License-Identifier: Apache-2.0
#include "pipeline/governor.h"

#include <algorithm>

namespace saturate {

int Governor::decide(const WorkerInterval& interval) {
    auto wall = static_cast<double>(std::max<std::int64_t>(interval.wall_ns, 1));
    auto busy = static_cast<double>(interval.busy_ns);
    double wait_share = static_cast<double>(interval.consumer_wait_ns) / wall;
    double busy_share = busy / (wall * workers_);
    double cpu_share = busy > 0 ? static_cast<double>(interval.cpu_ns) / busy : 1;
    if (wait_share > 0.05 && busy_share > 0.8) {
        calm_ = 0;
        bool storage_bound = cpu_share < 0.5;
        if (workers_ < (storage_bound ? most(cores_) : cores_)) {
            ++workers_;
            // Above the number of cores the minimum is not raised: storage may get faster again.
            least_ = std::min(workers_, cores_);
        }
    } else if (wait_share < 0.01 && busy_share * workers_ < 0.7 * (workers_ - 1)) {
        // One worker fewer would still have time to spare. Requires three such decisions in a row.
        if (++calm_ >= 3 && workers_ > least_) {
            --workers_;
            calm_ = 0;
        }
    } else {
        calm_ = 0;
    }
    return workers_;
}

}  // namespace saturate
