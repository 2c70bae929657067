// SPDX-License-Identifier: Apache-2.0
// Caches what a source has prepared (decoded images) for later epochs. Random steps such as crops
// are not cached. The cache is in memory, up to a limit, or in one mapped file that later runs and
// other processes on the machine share. write() from many threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "pipeline/source.h"

namespace saturate {

enum class CachePlace { memory, disk };

struct CacheSettings {
    CachePlace place = CachePlace::memory;
    std::uint64_t limit_bytes = 0;      // samples that do not fit are prepared every time
    std::filesystem::path folder = {};  // for disk: one file per source identity
};

// Stores prepared samples. The two implementations are in cache.cpp and cache_file.cpp.
class SampleStore {
  public:
    virtual ~SampleStore() = default;
    // Returns an empty span if the sample is not stored. The bytes stay valid as long as the store.
    [[nodiscard]] virtual std::span<const std::byte> find(std::int64_t index) const = 0;
    // Does nothing if the store is full or another thread was faster.
    virtual void keep(std::int64_t index, std::span<const std::byte> bytes) = 0;
    [[nodiscard]] virtual std::uint64_t used_bytes() const = 0;
};
[[nodiscard]] std::unique_ptr<SampleStore> memory_store(std::int64_t samples,
                                                        std::uint64_t limit_bytes);
// `identity` names the file and must match the one inside it; a file that does not match is
// rewritten. A second process reads what the first one writes. Throws UserError or MachineError if
// the file cannot be made.
[[nodiscard]] std::unique_ptr<SampleStore> file_store(const std::filesystem::path& folder,
                                                      const std::string& identity,
                                                      std::int64_t samples,
                                                      std::uint64_t limit_bytes);

class CachedSource final : public SampleSource {
  public:
    CachedSource(std::shared_ptr<const CacheableSource> source, const CacheSettings& settings);

    [[nodiscard]] std::int64_t size() const override { return source_->size(); }
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override {
        return source_->fields();
    }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override;
    void write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
               SampleCost& cost) const override;
    [[nodiscard]] std::string name_of(std::int64_t index) const override {
        return source_->name_of(index);
    }
    [[nodiscard]] std::vector<std::string> notes() const override { return source_->notes(); }
    [[nodiscard]] std::uint64_t used_bytes() const { return store_->used_bytes(); }

  private:
    std::shared_ptr<const CacheableSource> source_;
    std::unique_ptr<SampleStore> store_;
};

}  // namespace saturate
