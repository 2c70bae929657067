// SPDX-License-Identifier: Apache-2.0
// Shared by the fuzz targets for images: sends bytes through decoder, crop, resize and colour.
#pragma once

#include "pipeline/image_stage.h"

namespace saturate {

// The bits of `how` choose the transform. The result must be an image or a BadImage exception.
inline void fuzz_image(Bytes file, unsigned how) {
    ImageTransform transform;
    transform.width = 24;
    transform.height = 17;
    transform.decode.channels = how & 1 ? 1 : 3;
    transform.fit = how & 2 ? Fit::random_resized_crop : how & 4 ? Fit::random_crop : Fit::stretch;
    transform.interpolation = how & 8 ? Interpolation::bicubic : Interpolation::bilinear;
    transform.decode.jpeg = how & 16   ? JpegDecode::full
                            : how & 32 ? JpegDecode::region
                                       : JpegDecode::scaled;
    transform.jitter.brightness = how & 64 ? 0.4 : 0;
    transform.jitter.contrast = how & 64 ? 0.4 : 0;
    transform.channels_last = (how & 128) != 0;
    try {
        ImageDecoder decoder(transform.decode);
        ImageSize size = decoder.open(file);
        if (static_cast<long>(size.width) * size.height > 1 << 19) return;  // slow, finds nothing
        ImageStage stage(transform);
        std::vector<std::byte> out(24 * 17 * 3 * sizeof(float));
        SampleCost cost;
        stage.write(file, {how, 1, 2}, out.data(), cost);
    } catch (const BadImage&) {
    }
}

}  // namespace saturate
