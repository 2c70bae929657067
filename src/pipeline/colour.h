// SPDX-License-Identifier: Apache-2.0
// Changes brightness, contrast, saturation and hue of a planar float image from 0 to 255, as
// torchvision's v2 does on float images from 0 to 1. Pure functions on the caller's memory.
#pragma once

#include "pipeline/transform.h"

namespace saturate {

struct Planes {
    float* channel[3] = {nullptr, nullptr, nullptr};
    int channels = 0;
    int width = 0;
    int height = 0;
    int stride = 0;  // floats from row to row
};

void apply_jitter(const ImagePlan& plan, const Planes& image);

}  // namespace saturate
