// SPDX-License-Identifier: Apache-2.0
#include "pipeline/cache.h"

#include <atomic>
#include <cstring>
#include <vector>

namespace saturate {

namespace {

// Keeps the first samples it gets: epochs are shuffled, so replacing samples would gain nothing.
class MemoryStore final : public SampleStore {
  public:
    MemoryStore(std::int64_t samples, std::uint64_t limit_bytes)
        : entries_(static_cast<std::size_t>(samples)), limit_(limit_bytes) {}
    ~MemoryStore() override {
        for (std::atomic<Entry*>& entry : entries_) delete entry.load();
    }
    MemoryStore(const MemoryStore&) = delete;
    MemoryStore& operator=(const MemoryStore&) = delete;

    [[nodiscard]] std::span<const std::byte> find(std::int64_t index) const override {
        const Entry* entry = entries_[static_cast<std::size_t>(index)].load();
        return entry ? std::span<const std::byte>(entry->bytes) : std::span<const std::byte>();
    }
    void keep(std::int64_t index, std::span<const std::byte> bytes) override {
        if (used_.fetch_add(bytes.size()) + bytes.size() > limit_) {
            used_ -= bytes.size();
            return;
        }
        auto entry = std::make_unique<Entry>();
        entry->bytes.assign(bytes.begin(), bytes.end());
        Entry* nothing = nullptr;
        if (entries_[static_cast<std::size_t>(index)].compare_exchange_strong(nothing, entry.get()))
            (void)entry.release();
        else
            used_ -= bytes.size();
    }
    [[nodiscard]] std::uint64_t used_bytes() const override { return used_; }

  private:
    struct Entry {
        std::vector<std::byte> bytes;
    };
    std::vector<std::atomic<Entry*>> entries_;
    std::uint64_t limit_;
    std::atomic<std::uint64_t> used_ = 0;
};

class CacheScratch final : public Scratch {
  public:
    std::unique_ptr<Scratch> inner;
    std::vector<std::byte> prepared;
};

}  // namespace

std::unique_ptr<SampleStore> memory_store(std::int64_t samples, std::uint64_t limit_bytes) {
    return std::make_unique<MemoryStore>(samples, limit_bytes);
}

CachedSource::CachedSource(std::shared_ptr<const CacheableSource> source,
                           const CacheSettings& settings)
    : source_(std::move(source)),
      store_(settings.place == CachePlace::memory
                 ? memory_store(source_->size(), settings.limit_bytes)
                 : file_store(settings.folder, source_->identity(), source_->size(),
                              settings.limit_bytes)) {}

std::unique_ptr<Scratch> CachedSource::make_scratch() const {
    auto scratch = std::make_unique<CacheScratch>();
    scratch->inner = source_->make_scratch();
    return scratch;
}

void CachedSource::write(const SampleDraw& draw, Scratch& scratch,
                         std::span<std::byte* const> places, SampleCost& cost) const {
    auto& own = static_cast<CacheScratch&>(scratch);
    std::span<const std::byte> kept = store_->find(draw.index);
    if (!kept.empty()) {
        ++cost.cache_hits;
        source_->finish(draw, kept, *own.inner, places, cost);
        return;
    }
    source_->prepare(draw.index, *own.inner, own.prepared, cost);
    source_->finish(draw, own.prepared, *own.inner, places, cost);
    store_->keep(draw.index, own.prepared);
}

}  // namespace saturate
