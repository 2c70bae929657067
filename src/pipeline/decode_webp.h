// SPDX-License-Identifier: Apache-2.0
// Decodes WebP with libwebp, lossy and lossless; animations are rejected. Used only by
// image_decode.cpp, one decoder per worker thread.
#pragma once

#include "pipeline/image.h"

namespace saturate {

class WebpDecoder {
  public:
    [[nodiscard]] ImageSize open(Bytes file);
    // Decodes the whole image; the view is valid until the next call.
    [[nodiscard]] ImageView decode(int channels);

  private:
    Bytes file_;
    ImageSize size_;
    Buffer<std::uint8_t> pixels_;
};

}  // namespace saturate
