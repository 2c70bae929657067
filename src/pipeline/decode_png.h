// SPDX-License-Identifier: Apache-2.0
// Decodes PNG: libdeflate inflates in one call, the rest happens here. All colour types and depths,
// interlaced or not; of 16 bits the upper 8 are kept; transparency is dropped. CRCs are checked.
// Used only by image_decode.cpp, one decoder per worker thread.
#pragma once

#include <memory>

#include "pipeline/image.h"

namespace saturate {

class PngDecoder {
  public:
    PngDecoder();
    ~PngDecoder();

    [[nodiscard]] ImageSize open(Bytes file);
    // Decodes the whole image; the view is valid until the next call.
    [[nodiscard]] ImageView decode(int channels);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
