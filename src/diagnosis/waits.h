// SPDX-License-Identifier: Apache-2.0
// The calls in which the host waits for the GPU, by why they are made. They hide each other: when
// one kind is removed the next waits in its place. Where that is so, removing all of them is one
// finding and the kinds are its parts.
#pragma once

#include <cstdint>
#include <vector>

namespace saturate {

struct Context;

struct WaitGroup {
    std::vector<std::uint32_t> calls;  // Trace::events, by start
    std::int64_t idle_ns = 0;          // of the GPU, from their return to the next work
};

struct Waits {
    WaitGroup reads;                      // inside item(), nonzero() ...
    WaitGroup to_host;                    // behind copies into pageable memory
    WaitGroup to_device;                  // behind copies from pageable memory
    WaitGroup explicit_ones;              // torch.cuda.synchronize(), events
    std::vector<std::uint32_t> read_ops;  // the operators of `reads`
};

[[nodiscard]] Waits find_waits(const Context& context);

}  // namespace saturate
