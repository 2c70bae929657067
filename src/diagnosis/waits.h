// SPDX-License-Identifier: Apache-2.0
// The calls in which the host waits for the GPU, grouped by the reason. The groups hide each other:
// if one group is removed, the next one waits instead. In that case removing all of them is one
// finding and the groups are its parts.
#pragma once

#include <cstdint>
#include <vector>

namespace saturate {

struct Context;

struct WaitGroup {
    std::vector<std::uint32_t> calls;  // in Trace::events, by start
    std::int64_t idle_ns = 0;          // of the GPU, from the return of a call to the next work
};

struct Waits {
    WaitGroup reads;                      // inside item(), nonzero() ...
    WaitGroup to_host;                    // after copies into pageable memory
    WaitGroup to_device;                  // after copies from pageable memory
    WaitGroup explicit_ones;              // torch.cuda.synchronize(), events
    std::vector<std::uint32_t> read_ops;  // operators around the calls of `reads`
};

[[nodiscard]] Waits find_waits(const Context& context);

}  // namespace saturate
