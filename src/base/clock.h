// SPDX-License-Identifier: Apache-2.0
// The only source of durations. Steady: it never jumps when the system time is set.
#pragma once

#include <chrono>
#include <cstdint>

namespace saturate {

using Clock = std::chrono::steady_clock;

// Nanoseconds since an arbitrary start that is the same for all processes of this boot.
inline std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
        .count();
}

// Nanoseconds since 1970, for time stamps that people read. Do not use it for durations.
inline std::int64_t wall_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

}  // namespace saturate
