// SPDX-License-Identifier: Apache-2.0
// The ring of slabs behind a loader's batches: memory is taken once and goes round. Shared by the
// loader and the batches it gave out, so that a batch may outlive its loader. What is marked
// "locked" is called with `mutex` held.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "pipeline/batch.h"

namespace saturate {

// Gives and takes back the memory of slabs; the engine passes one that page-locks it for a GPU.
class SlabMemory {
  public:
    virtual ~SlabMemory() = default;
    [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;  // at least 64-byte aligned
    virtual void release(void* memory, std::size_t bytes) noexcept = 0;
};
[[nodiscard]] std::shared_ptr<SlabMemory> ordinary_memory();
// Keeps what is released and gives it out again: for loaders that come and go, as evaluations do,
// where page-locking takes longer than loading. Null stays null. Any thread.
[[nodiscard]] std::shared_ptr<SlabMemory> kept_memory(std::shared_ptr<SlabMemory> memory);

// Of a batch of these fields, with what lies between them.
[[nodiscard]] std::size_t slab_bytes(const std::vector<FieldSpec>& fields, std::int64_t batch_size);

// Memory for one batch.
struct Slab {
    std::byte* memory = nullptr;
    std::vector<FieldView> fields;
    std::vector<std::int64_t> samples;
    // Where the count of a lent slab's holders lives, so that lending allocates nothing.
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

    [[nodiscard]] bool is_empty() const { return free_.empty(); }  // nothing free; locked
    // A free slab, or a new one while there are fewer than `most`, or null. Locked. Throws
    // MachineError when there is no memory.
    [[nodiscard]] Slab* take(std::size_t most);
    void put_back(Slab* slab);  // locked
    // For a batch: the last holder puts the slab back and wakes `returned`.
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
