// SPDX-License-Identifier: Apache-2.0
// Memory for slabs that another process can map: anonymous files in memory (memfd), which need no
// room below /dev/shm, have no name, and are gone with the last process that maps them.
// Any thread.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "pipeline/slab.h"

namespace saturate {

class SharedSlabs final : public SlabMemory {
  public:
    SharedSlabs() = default;
    ~SharedSlabs() override;
    SharedSlabs(const SharedSlabs&) = delete;
    SharedSlabs& operator=(const SharedSlabs&) = delete;

    void* allocate(std::size_t bytes) override;
    void release(void* memory, std::size_t bytes) noexcept override;

    [[nodiscard]] std::int64_t number_of(const void* memory) const;
    // Other memory at the same address, with a number of its own: whoever has mapped the old keeps
    // it unchanged. For memory that nobody writes at the moment. Throws std::bad_alloc.
    void replace(void* memory);

    // What was allocated since the last call. The receiver closes `file` once it was handed over.
    struct Fresh {
        std::int64_t number = 0;
        int file = -1;
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
