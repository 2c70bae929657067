// SPDX-License-Identifier: Apache-2.0
// Allocator for CPU tensors. It keeps freed blocks by size and reuses them, so that a step touches
// no new pages. It counts the memory in use, and with a limit running out becomes an exception that
// training survives. Any thread.
#pragma once

#include <cstdint>

namespace saturate {

struct CpuMemory {
    std::int64_t used_bytes = 0;
    std::int64_t peak_bytes = 0;      // of used, since the last reset
    std::int64_t reserved_bytes = 0;  // used, plus freed and kept for reuse
    std::int64_t fresh_blocks = 0;    // allocated from the system so far
};

// Replaces LibTorch's allocator for the rest of the process. This cannot be undone, because blocks
// live as long as their tensors. Further calls do nothing.
void use_caching_cpu_allocator();

[[nodiscard]] CpuMemory cpu_memory();
void reset_cpu_peak();
// 0: no limit. Allocations beyond the limit throw c10::OutOfMemoryError.
void set_cpu_memory_limit(std::int64_t bytes);
void release_cached_cpu_memory();

}  // namespace saturate
