// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slab.h"

#include <fmt/format.h>

#include <map>
#include <new>

#include "base/error.h"
#include "base/text.h"

namespace saturate {

namespace {

constexpr std::size_t kAlignment = 4096;  // of a slab: page-locking works on pages
constexpr std::size_t kFieldAlignment = 64;

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

class OrdinaryMemory final : public SlabMemory {
  public:
    void* allocate(std::size_t bytes) override {
        return ::operator new(bytes, std::align_val_t(kAlignment));
    }
    void release(void* memory, std::size_t) noexcept override {
        ::operator delete(memory, std::align_val_t(kAlignment));
    }
};

// Allocator that puts a lent slab's control block inside the slab. The slab goes back when the
// control block is deallocated, not when the deleter runs: until then the block
// is still in the slab.
template <typename T>
struct InSlab {
    using value_type = T;
    InSlab(std::shared_ptr<SlabRing> the_ring, Slab* the_slab)
        : ring(std::move(the_ring)), slab(the_slab) {}
    template <typename U>
    InSlab(const InSlab<U>& other) : ring(other.ring), slab(other.slab) {}

    T* allocate(std::size_t) {
        static_assert(sizeof(T) <= sizeof(Slab::holders) && alignof(T) <= 16);
        return reinterpret_cast<T*>(slab->holders);
    }
    void deallocate(T*, std::size_t) noexcept {
        {
            std::lock_guard lock(ring->mutex);
            ring->put_back(slab);
        }
        ring->returned.notify_all();
    }
    template <typename U>
    bool operator==(const InSlab<U>& other) const {
        return slab == other.slab;
    }

    std::shared_ptr<SlabRing> ring;
    Slab* slab;
};

class KeptMemory final : public SlabMemory {
  public:
    explicit KeptMemory(std::shared_ptr<SlabMemory> memory) : memory_(std::move(memory)) {}
    ~KeptMemory() override {
        for (const auto& [bytes, memory] : kept_) memory_->release(memory, bytes);
    }
    KeptMemory(const KeptMemory&) = delete;
    KeptMemory& operator=(const KeptMemory&) = delete;

    void* allocate(std::size_t bytes) override {
        {
            std::lock_guard lock(mutex_);
            if (auto found = kept_.find(bytes); found != kept_.end())
                return kept_.extract(found).mapped();
        }
        return memory_->allocate(bytes);
    }
    void release(void* memory, std::size_t bytes) noexcept override {
        try {
            std::lock_guard lock(mutex_);
            kept_.emplace(bytes, memory);
        } catch (const std::bad_alloc&) {
            memory_->release(memory, bytes);
        }
    }

  private:
    std::shared_ptr<SlabMemory> memory_;
    std::mutex mutex_;
    std::multimap<std::size_t, void*> kept_;  // by size
};

}  // namespace

std::shared_ptr<SlabMemory> kept_memory(std::shared_ptr<SlabMemory> memory) {
    return memory ? std::make_shared<KeptMemory>(std::move(memory)) : nullptr;
}

std::shared_ptr<SlabMemory> ordinary_memory() { return std::make_shared<OrdinaryMemory>(); }

std::size_t slab_bytes(const std::vector<FieldSpec>& fields, std::int64_t batch_size) {
    std::size_t bytes = 0;
    for (const FieldSpec& field : fields)
        bytes += round_up(field.bytes() * static_cast<std::size_t>(batch_size), kFieldAlignment);
    return round_up(bytes, kAlignment);
}

SlabRing::SlabRing(std::vector<FieldSpec> fields, std::int64_t batch_size,
                   std::shared_ptr<SlabMemory> memory)
    : fields_(std::move(fields)),
      batch_size_(batch_size),
      memory_(std::move(memory)),
      slab_bytes_(saturate::slab_bytes(fields_, batch_size)) {
    std::size_t offset = 0;
    for (const FieldSpec& field : fields_) {
        offsets_.push_back(offset);
        sample_bytes_.push_back(field.bytes());
        offset += round_up(field.bytes() * static_cast<std::size_t>(batch_size), kFieldAlignment);
    }
}

SlabRing::~SlabRing() {
    for (const std::unique_ptr<Slab>& slab : slabs_) memory_->release(slab->memory, slab_bytes_);
}

Slab* SlabRing::take(std::size_t most) {
    if (!free_.empty()) {
        Slab* slab = free_.back();
        free_.pop_back();
        return slab;
    }
    if (slabs_.size() >= most) return nullptr;
    auto slab = std::make_unique<Slab>();
    slab->samples.resize(static_cast<std::size_t>(batch_size_));
    slabs_.reserve(slabs_.size() + 1);
    free_.reserve(slabs_.size() + 1);  // so that putting back never allocates
    try {
        slab->memory = static_cast<std::byte*>(memory_->allocate(slab_bytes_));
    } catch (const std::bad_alloc&) {
        throw MachineError(
            {.where = {},
             .found = fmt::format("no memory for a batch of {}: {} after {} others", batch_size_,
                                  bytes_text(slab_bytes_), slabs_.size()),
             .expected = "",
             .fix = "a smaller batch_size or prefetch_factor"});
    }
    for (std::size_t i = 0; i < fields_.size(); ++i)
        slab->fields.push_back({.spec = &fields_[i], .data = slab->memory + offsets_[i]});
    slabs_.push_back(std::move(slab));
    return slabs_.back().get();
}

void SlabRing::put_back(Slab* slab) { free_.push_back(slab); }

std::shared_ptr<void> SlabRing::lend(Slab* slab) {
    return {static_cast<void*>(slab), [](void*) {}, InSlab<Slab>(shared_from_this(), slab)};
}

}  // namespace saturate
