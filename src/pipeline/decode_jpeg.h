// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG with libjpeg-turbo: grey, YCbCr, RGB, CMYK and YCCK, baseline and progressive. Used
// only by image_decode.cpp, one decoder per worker thread.
#pragma once

#include <memory>

#include "pipeline/image_decode.h"

namespace saturate {

struct JpegHeader {
    ImageSize size;       // as stored
    int orientation = 1;  // EXIF: 1 to 8
};

// Which part is decoded, in stored orientation, and how.
struct JpegPart {
    Region wanted;
    int channels = 3;
    int reduce = 1;      // 1, 2, 4 or 8: at 1/reduce of the size
    bool whole = false;  // the part within the whole image, not cropped while decoding
};

class JpegDecoder {
  public:
    JpegDecoder();
    ~JpegDecoder();

    [[nodiscard]] JpegHeader open(Bytes file);
    // The pixels are valid until the next call.
    [[nodiscard]] Decoded decode(const JpegPart& part);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Reads the orientation tag of an EXIF block ("Exif\0\0" and a TIFF header); 1 if there is none.
[[nodiscard]] int exif_orientation(Bytes block);

}  // namespace saturate
