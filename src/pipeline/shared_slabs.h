// SPDX-License-Identifier: Apache-2.0
// Slab memory that another process can map: anonymous files in memory (memfd). They need no space
// in /dev/shm, have no name, and end with the last process that maps them. Any thread.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "base/descriptor.h"
#include "pipeline/slab.h"

namespace saturate {

class SharedSlabs final : public SlabMemory {
  public:
    void* allocate(std::size_t bytes) override;
    void release(void* memory, std::size_t bytes) noexcept override;

    [[nodiscard]] std::int64_t number_of(const void* memory) const;
    // Puts new memory, with a new number, at the same address. Processes that have mapped the old
    // memory keep it unchanged. Nobody may be writing to it. Throws std::bad_alloc.
    void replace(void* memory);

    // Memory allocated since the last call.
    struct Fresh {
        std::int64_t number = 0;
        Descriptor file;
        std::size_t bytes = 0;
    };
    [[nodiscard]] std::vector<Fresh> take_fresh();

  private:
    struct Place {
        std::int64_t number = 0;
        std::size_t bytes = 0;
    };
    mutable std::mutex mutex_;
    std::map<const void*, Place> places_;
    std::vector<Fresh> fresh_;
    std::int64_t next_ = 0;
};

}  // namespace saturate
