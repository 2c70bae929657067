// SPDX-License-Identifier: Apache-2.0
// Brightness, contrast, saturation and hue of a planar float image of 0 to 255, as torchvision's v2
// does it on float images of 0 to 1. Pure functions on memory of the caller.
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
