// SPDX-License-Identifier: Apache-2.0
// Images in tar shards, as WebDataset packs them: a sample is the files of one stem that follow
// each other, 000123.jpg and 000123.cls (a number as text). The headers are read once, several
// shards at a time; a sample is then one read of neighbouring bytes. Also a shuffled epoch takes
// runs of 32 neighbours, which storage is asked for at once. write() from many threads.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/transform.h"

namespace saturate {

struct TarShardSettings {
    std::vector<std::filesystem::path> shards;  // in the order in which their samples count
    ImageTransform transform;
    int threads = 8;  // that read headers
};

class TarShards final : public SampleSource {
  public:
    // Throws UserError for shards that are broken or hold no images.
    explicit TarShards(TarShardSettings settings);
    ~TarShards() override;

    // Fields image, and label (int64) when the first sample has one.
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

// The *.tar files of a folder, by name.
[[nodiscard]] std::vector<std::filesystem::path> shards_in(const std::filesystem::path& folder);

}  // namespace saturate
