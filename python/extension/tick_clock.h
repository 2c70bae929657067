// SPDX-License-Identifier: Apache-2.0
// The clock of time.perf_counter_ns from the processor's own counter, where the kernel trusts it as
// its clock: hooks that lie hundreds of microseconds apart find the pages of the C library's clock
// out of reach each time, and wait for them. Set right by the kernel's clock ten times a second.
// Under the interpreter's lock.
#pragma once

#include <cstdint>

namespace saturate {

class TickClock {
  public:
    // Whether the kernel counts by the processor's counter; else every call asks the kernel.
    void begin();
    [[nodiscard]] std::int64_t now();

  private:
    [[nodiscard]] std::int64_t renew();

    std::uint64_t tick_ = 0, valid_ticks_ = 0;  // what was read last, and how long it holds
    std::int64_t ns_ = 0;                       // the kernel's time at tick_
    double ns_per_tick_ = 0;                    // 0: not known yet
    bool is_trusted_ = false;
};

}  // namespace saturate
