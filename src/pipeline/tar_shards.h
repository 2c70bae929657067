// SPDX-License-Identifier: Apache-2.0
// Images in tar shards, as WebDataset packs them: a sample is the consecutive files with the same
// stem, 000123.jpg and 000123.cls (a number as text). The headers are read once, several shards at
// a time; a sample is then one read of neighbouring bytes. A shuffled epoch also goes in runs of 32
// neighbours, which are prefetched together. write() from many threads.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/transform.h"

namespace saturate {

struct TarShardSettings {
    std::vector<std::filesystem::path> shards;  // in the order of their samples
    ImageTransform transform;
    int threads = 8;  // for reading headers
};

class TarShards final : public SampleSource {
  public:
    // Throws UserError if a shard is broken or has no images.
    explicit TarShards(TarShardSettings settings);
    ~TarShards() override;

    // Fields: image, and label (int64) if the first sample has one.
    [[nodiscard]] std::int64_t size() const override;
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override;
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override;
    void write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
               SampleCost& cost) const override;
    [[nodiscard]] std::int64_t neighbours() const override;
    [[nodiscard]] std::string name_of(std::int64_t index) const override;  // "a.tar: 000123.jpg"

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Returns the *.tar files of a folder, sorted by name.
[[nodiscard]] std::vector<std::filesystem::path> shards_in(const std::filesystem::path& folder);

}  // namespace saturate
