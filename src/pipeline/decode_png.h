// SPDX-License-Identifier: Apache-2.0
// PNG: inflated in one go by libdeflate, unfiltered and widened here. All colour types and depths,
// interlaced or not; 16 bits keep the upper 8; transparency is dropped. CRCs are checked.
// Used by image_decode.cpp alone, from one worker thread.
#pragma once

#include <memory>

#include "pipeline/image.h"

namespace saturate {

class PngDecoder {
  public:
    PngDecoder();
    ~PngDecoder();

    [[nodiscard]] ImageSize open(Bytes file);
    // The whole image; lives until the next call.
    [[nodiscard]] ImageView decode(int channels);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
