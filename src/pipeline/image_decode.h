// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG, PNG and WebP files into pixels; recognises the format by content, not by name.
// Works in two steps, because a random crop needs the size before it can tell which part to decode.
// One decoder per worker thread; it keeps its memory from file to file.
#pragma once

#include <memory>

#include "pipeline/image.h"

namespace saturate {

enum class JpegDecode {
    full,    // decode the whole image, then crop
    region,  // decode only the needed part: bit-identical to `full`
    scaled,  // also decode at 1/2, 1/4 or 1/8 of the size in the inverse DCT, if that is at least
             // as large as the target: faster for large images, on average one
             // to two grey levels off
};

struct DecodeSettings {
    int channels = 3;  // 1: grey (Rec. 601 luma), 3: RGB; transparency is dropped
    JpegDecode jpeg = JpegDecode::scaled;
    bool exif_orientation = true;  // turn the image upright as its camera says
};

// The pixels and the wanted region in them. Its bounds may be fractions, from DCT scaling.
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

    // Reads the header. `file` must stay valid until decode() is done. Throws BadImage.
    [[nodiscard]] ImageSize open(Bytes file);
    // Decodes at least `wanted` of the upright image; `target` is the size it will be resized to.
    // The result is valid until the next call. Throws BadImage.
    [[nodiscard]] const Decoded& decode(const Region& wanted, ImageSize target);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
