// SPDX-License-Identifier: Apache-2.0
#include "pipeline/decode_webp.h"

#include <webp/decode.h>

namespace saturate {

ImageSize WebpDecoder::open(Bytes file) {
    WebPBitstreamFeatures features;
    if (WebPGetFeatures(file.data(), file.size(), &features) != VP8_STATUS_OK)
        throw BadImage("WebP header is broken");
    if (features.has_animation) throw BadImage("an animated WebP, not one image");
    check_image_size(features.width, features.height);
    file_ = file;
    size_ = {features.width, features.height};
    return size_;
}

ImageView WebpDecoder::decode(int channels) {
    std::size_t stride = static_cast<std::size_t>(size_.width) * 3;
    std::size_t bytes = stride * size_.height;
    std::uint8_t* pixels = pixels_.get(bytes);
    if (!WebPDecodeRGBInto(file_.data(), file_.size(), pixels, bytes, static_cast<int>(stride)))
        throw BadImage("WebP data is broken or ends early");
    if (channels == 3) return {pixels, size_, 3, stride};
    // In place: each grey pixel is written at or before the RGB pixel it comes from.
    std::size_t count = static_cast<std::size_t>(size_.width) * size_.height;
    for (std::size_t i = 0; i < count; ++i)
        pixels[i] = static_cast<std::uint8_t>((pixels[3 * i] * 19595 + pixels[3 * i + 1] * 38470 +
                                               pixels[3 * i + 2] * 7471 + 32768) >>
                                              16);
    return {pixels, size_, 1, static_cast<std::size_t>(size_.width)};
}

}  // namespace saturate
