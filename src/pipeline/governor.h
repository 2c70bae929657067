// SPDX-License-Identifier: Apache-2.0
// How many workers `num_workers: auto` uses: it starts from the cores and follows the measured
// wait. A pure decision: the loader feeds it, tests can too.
#pragma once

#include <cstdint>

namespace saturate {

// What happened since the last decision.
struct WorkerInterval {
    std::int64_t wall_ns = 0;
    std::int64_t consumer_wait_ns = 0;
    std::int64_t busy_ns = 0;  // of all workers, in write()
    std::int64_t cpu_ns = 0;   // of these, on a core rather than waiting for storage
};

class Governor {
  public:
    explicit Governor(int cores) : cores_(cores), workers_(cores) {}
    [[nodiscard]] int workers() const { return workers_; }
    // Most that it ever asks for: workers that wait for storage do not use their core.
    [[nodiscard]] static int most(int cores) { return 4 * cores; }
    // The new number of workers.
    int decide(const WorkerInterval& interval);

  private:
    int cores_;
    int workers_;
    int least_ = 1;  // fewer were tried, and the trainer had to wait
    int calm_ = 0;   // decisions in a row without any wait
};

}  // namespace saturate
