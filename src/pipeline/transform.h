// SPDX-License-Identifier: Apache-2.0
// What happens to an image between file and batch: which part is cut out, its size, flips, colours,
// normalisation and memory layout. Randomness comes only from a SampleDraw. Settings and pure
// functions; any thread.
#pragma once

#include <array>
#include <vector>

#include "pipeline/batch.h"
#include "pipeline/image_decode.h"
#include "pipeline/resize.h"
#include "pipeline/source.h"

namespace saturate {

enum class Fit {
    stretch,              // the whole image to width x height
    shorter_side,         // shorter side to `resize_to`, then crop the middle: usual for evaluation
    resized_sides,        // both sides to `resize_sides`, then crop the middle
    random_resized_crop,  // a random part of random area and aspect ratio, to width x height
    random_crop,          // width x height pixels from a random place, not resized
    centre_crop,          // ... from the middle
    as_is,                // already width x height; an image of another size is a bad sample
};

// As torchvision's ColorJitter: factors from [1 - x, 1 + x], hue shift from [-hue, hue] turns.
struct ColourJitter {
    double brightness = 0;
    double contrast = 0;
    double saturation = 0;
    double hue = 0;  // up to 0.5
    [[nodiscard]] bool any() const {
        return brightness > 0 || contrast > 0 || saturation > 0 || hue > 0;
    }
};

struct ImageTransform {
    int width = 224;
    int height = 224;
    Fit fit = Fit::stretch;
    Interpolation interpolation = Interpolation::bilinear;
    int resize_to = 256;                       // shorter_side
    std::array<int, 2> resize_sides = {};      // resized_sides: width, height
    bool crop_anywhere = false;                // crop these two at random, not in the middle
    std::array<double, 2> area = {0.08, 1.0};  // random_resized_crop
    std::array<double, 2> aspect = {3.0 / 4, 4.0 / 3};
    // For the two crops: surround the image with `pad` pixels of `pad_value`. An image that is
    // still too small is padded further on both sides.
    int pad = 0;
    int pad_value = 0;
    double flip_horizontal = 0;  // probability
    double flip_vertical = 0;
    ColourJitter jitter;
    // (pixel / 255 - mean) / deviation per channel; empty: 0 and 1. Not for uint8.
    std::vector<float> mean;
    std::vector<float> deviation;
    Element element = Element::float32;  // or bfloat16, or uint8: rounded, 0 to 255
    bool channels_last = false;
    DecodeSettings decode;

    [[nodiscard]] FieldSpec field(std::string name) const;
    void check() const;  // throws UserError for invalid settings
};

enum class ColourStep { brightness, contrast, saturation, hue };

// All random choices for one image, made once its size is known.
struct ImagePlan {
    ResizeAxis across, down;  // from the image ...
    Region place;             // ... to this part of the result; the rest is padding
    bool has_jitter = false;
    std::array<ColourStep, 4> order{};
    double brightness = 1, contrast = 1, saturation = 1, hue = 0;
};

[[nodiscard]] ImagePlan plan_image(const ImageTransform& transform, ImageSize size,
                                   const SampleDraw& draw);

}  // namespace saturate
