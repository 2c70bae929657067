// SPDX-License-Identifier: Apache-2.0
// time.perf_counter_ns from the processor's own counter, if the kernel uses that counter as its
// clock. Hooks run hundreds of microseconds apart, by which time the pages of the C library's clock
// have left the caches, and each call would wait for them. Adjusted to the kernel's clock ten times
// a second. Used under the interpreter's lock.
#pragma once

#include <cstdint>

namespace saturate {

class TickClock {
  public:
    // Checks whether the kernel uses the processor's counter; if not, every call asks the kernel.
    void begin();
    [[nodiscard]] std::int64_t now();

  private:
    [[nodiscard]] std::int64_t renew();

    std::uint64_t tick_ = 0, valid_ticks_ = 0;  // the counter last read, and how long it is valid
    std::int64_t ns_ = 0;                       // the kernel's time at tick_
    double ns_per_tick_ = 0;                    // 0: not known yet
    bool is_trusted_ = false;
};

}  // namespace saturate
