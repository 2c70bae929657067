// SPDX-License-Identifier: Apache-2.0
// Turns the bytes of a JPEG, PNG or WebP file into pixels; the format is told by content, not by
// name. Two steps, because a random crop must know the size before it says which part it needs.
// One decoder per worker thread; it keeps its memory from file to file.
#pragma once

#include <memory>

#include "pipeline/image.h"

namespace saturate {

enum class JpegDecode {
    full,    // the whole image, then the crop is taken from it
    region,  // only the part that is needed: the same pixels as `full`, to the bit
    scaled,  // also a half, quarter or eighth of the size in the inverse DCT when that still is at
             // least what is asked for: faster for large images, one to two grey levels off on
             // average
};

struct DecodeSettings {
    int channels = 3;  // 1: grey (Rec. 601 luma), 3: RGB; transparency is dropped
    JpegDecode jpeg = JpegDecode::scaled;
    bool exif_orientation = true;  // turn the image upright as its camera says
};

// The pixels, and where in them the wanted region lies; fractions come from DCT scaling.
struct Decoded {
    ImageView view;
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
};

class ImageDecoder {
  public:
    explicit ImageDecoder(DecodeSettings settings);
    ~ImageDecoder();

    // Reads the header. `file` must stay until decode() is done. Throws BadImage.
    [[nodiscard]] ImageSize open(Bytes file);
    // At least `wanted` of the upright image; `target` is the size it will be resized to. The
    // result lives until the next call. Throws BadImage.
    [[nodiscard]] const Decoded& decode(const Region& wanted, ImageSize target);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
