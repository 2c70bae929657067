// SPDX-License-Identifier: Apache-2.0
// Memory of tensors on the CPU: freed blocks are kept by size and given out again, so that a step
// touches no new page. It counts what is in use, and a limit makes running out an exception that
// training survives. Any thread.
#pragma once

#include <cstdint>

namespace saturate {

struct CpuMemory {
    std::int64_t used_bytes = 0;
    std::int64_t peak_bytes = 0;      // of used, since the last reset
    std::int64_t reserved_bytes = 0;  // used and kept for later
    std::int64_t fresh_blocks = 0;    // taken from the system so far
};

// Replaces LibTorch's allocator for the rest of the process: blocks live as long as tensors do, so
// it cannot be undone. Further calls do nothing.
void use_caching_cpu_allocator();

[[nodiscard]] CpuMemory cpu_memory();
void reset_cpu_peak();
// 0: none. Asking for more then throws c10::OutOfMemoryError.
void set_cpu_memory_limit(std::int64_t bytes);
void release_cached_cpu_memory();

}  // namespace saturate
