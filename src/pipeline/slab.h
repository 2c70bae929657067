// SPDX-License-Identifier: Apache-2.0
// The ring of slabs behind a loader's batches: memory is allocated once and reused. Shared by the
// loader and its batches, so that a batch may outlive its loader. Functions marked "locked" are
// called with `mutex` held.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "pipeline/batch.h"

namespace saturate {

// Allocates and releases slab memory; for a GPU the engine passes page-locked memory.
class SlabMemory {
  public:
    virtual ~SlabMemory() = default;
    [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;  // at least 64-byte aligned
    virtual void release(void* memory, std::size_t bytes) noexcept = 0;
};
[[nodiscard]] std::shared_ptr<SlabMemory> ordinary_memory();
// Keeps released memory and hands it out again. For short-lived loaders, as in evaluations, where
// page-locking takes longer than loading. Null stays null. Any thread.
[[nodiscard]] std::shared_ptr<SlabMemory> kept_memory(std::shared_ptr<SlabMemory> memory);

// Size of a batch of these fields, including the gaps between them.
[[nodiscard]] std::size_t slab_bytes(const std::vector<FieldSpec>& fields, std::int64_t batch_size);

// Memory for one batch.
struct Slab {
    std::byte* memory = nullptr;
    std::vector<FieldView> fields;
    std::vector<std::int64_t> samples;
    // Space for the control block of a lent slab, so that lending allocates nothing.
    alignas(16) std::byte holders[96];
};

class SlabRing : public std::enable_shared_from_this<SlabRing> {
  public:
    SlabRing(std::vector<FieldSpec> fields, std::int64_t batch_size,
             std::shared_ptr<SlabMemory> memory);
    ~SlabRing();
    SlabRing(const SlabRing&) = delete;
    SlabRing& operator=(const SlabRing&) = delete;

    [[nodiscard]] std::size_t slab_bytes() const { return slab_bytes_; }
    [[nodiscard]] std::size_t count() const { return slabs_.size(); }  // locked
    [[nodiscard]] const std::vector<std::size_t>& sample_bytes() const { return sample_bytes_; }

    [[nodiscard]] bool is_empty() const { return free_.empty(); }  // no free slab; locked
    // Returns a free slab, or a new one if there are fewer than `most`, otherwise null. Locked.
    // Throws MachineError if there is no memory.
    [[nodiscard]] Slab* take(std::size_t most);
    void put_back(Slab* slab);  // locked
    // Lends the slab to a batch: the last holder puts it back and wakes `returned`.
    [[nodiscard]] std::shared_ptr<void> lend(Slab* slab);

    std::mutex mutex;
    std::condition_variable returned;

  private:
    std::vector<FieldSpec> fields_;
    std::int64_t batch_size_;
    std::shared_ptr<SlabMemory> memory_;
    std::size_t slab_bytes_;
    std::vector<std::size_t> offsets_, sample_bytes_;
    std::vector<std::unique_ptr<Slab>> slabs_;
    std::vector<Slab*> free_;
};

}  // namespace saturate
