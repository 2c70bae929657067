// SPDX-License-Identifier: Apache-2.0
// Decides how many workers `num_workers: auto` uses: starts with one per core and follows the
// measured wait. A pure decision on figures from the loader or a test.
#pragma once

#include <cstdint>

namespace saturate {

// Measurements since the last decision.
struct WorkerInterval {
    std::int64_t wall_ns = 0;
    std::int64_t consumer_wait_ns = 0;
    std::int64_t busy_ns = 0;  // sum over all workers, in write()
    std::int64_t cpu_ns = 0;   // part of busy_ns spent on a core, not waiting for storage
};

class Governor {
  public:
    explicit Governor(int cores) : cores_(cores), workers_(cores) {}
    [[nodiscard]] int workers() const { return workers_; }
    // The highest number it ever returns: workers that wait for storage do not use their core.
    [[nodiscard]] static int most(int cores) { return 4 * cores; }
    // Returns the new number of workers.
    int decide(const WorkerInterval& interval);

  private:
    int cores_;
    int workers_;
    int least_ = 1;  // with fewer the trainer had to wait
    int calm_ = 0;   // decisions in a row without a wait
};

}  // namespace saturate
