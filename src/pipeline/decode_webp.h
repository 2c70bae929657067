// SPDX-License-Identifier: Apache-2.0
// WebP through libwebp, lossy and lossless; animations are refused. Used by image_decode.cpp alone,
// from one worker thread.
#pragma once

#include "pipeline/image.h"

namespace saturate {

class WebpDecoder {
  public:
    [[nodiscard]] ImageSize open(Bytes file);
    // The whole image; lives until the next call.
    [[nodiscard]] ImageView decode(int channels);

  private:
    Bytes file_;
    ImageSize size_;
    Buffer<std::uint8_t> pixels_;
};

}  // namespace saturate
