// SPDX-License-Identifier: Apache-2.0
// Turns the bytes of one image file into its pixels in the batch: decode, resize, colours, store.
// One per worker thread, inside an image source's scratch; allocates nothing more once it has seen
// the largest image.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "pipeline/transform.h"

namespace saturate {

class ImageStage {
  public:
    explicit ImageStage(const ImageTransform& transform);  // copied
    ~ImageStage();

    // Writes transform.field().bytes() bytes to `place`. The same draw and size give the same crop,
    // flips and colours. Throws BadImage.
    ImageSize write(Bytes file, const SampleDraw& draw, std::byte* place, SampleCost& cost);

    // The same in two steps with a cache between them. prepare() appends the whole image, not yet
    // cropped or scaled, to `prepared`; write_prepared() uses it and advances the span past it.
    void prepare(Bytes file, std::vector<std::byte>& prepared, SampleCost& cost);
    ImageSize write_prepared(std::span<const std::byte>& prepared, const SampleDraw& draw,
                             std::byte* place, SampleCost& cost);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
