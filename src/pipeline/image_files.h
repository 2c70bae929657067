// SPDX-License-Identifier: Apache-2.0
// Images from a list of paths, with or without labels, as a torchvision data set has already found
// them. Created for Python's loader; write() from many threads.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/transform.h"

namespace saturate {

struct ImageFilesSettings {
    std::string paths;                 // one after the other, each ends with NUL
    std::vector<std::int64_t> labels;  // one per path, or none at all
    ImageTransform transform;
};

class ImageFiles final : public CacheableSource {
  public:
    // Throws UserError if there are no paths or the number of labels differs.
    explicit ImageFiles(ImageFilesSettings settings);

    // Fields: image, and label (int64) if there are labels.
    [[nodiscard]] std::int64_t size() const override;
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override { return fields_; }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override;
    void write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
               SampleCost& cost) const override;
    void prepare(std::int64_t index, Scratch& scratch, std::vector<std::byte>& prepared,
                 SampleCost& cost) const override;
    void finish(const SampleDraw& draw, std::span<const std::byte> prepared, Scratch& scratch,
                std::span<std::byte* const> places, SampleCost& cost) const override;
    [[nodiscard]] std::string name_of(std::int64_t index) const override;
    [[nodiscard]] std::string identity() const override;

  private:
    void write_label(std::int64_t index, std::span<std::byte* const> places) const;

    ImageFilesSettings settings_;
    std::vector<std::size_t> starts_;
    std::vector<FieldSpec> fields_;
};

}  // namespace saturate
