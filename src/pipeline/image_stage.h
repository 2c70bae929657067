// SPDX-License-Identifier: Apache-2.0
// Carries one image from the bytes of its file into the batch: decode, resample, colour, store.
// One per worker thread, inside the scratch of an image source; allocates nothing once it has seen
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

    // Writes the image where `place` points: transform.field().bytes() bytes. The same draw and
    // size give the same crop, flips and colours. Throws BadImage.
    ImageSize write(Bytes file, const SampleDraw& draw, std::byte* place, SampleCost& cost);

    // The same in two steps, for a cache between them: the whole image, not yet cropped or scaled,
    // is appended to `prepared`, and write_prepared() takes it from there and moves on behind it.
    void prepare(Bytes file, std::vector<std::byte>& prepared, SampleCost& cost);
    ImageSize write_prepared(std::span<const std::byte>& prepared, const SampleDraw& draw,
                             std::byte* place, SampleCost& cost);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
