// SPDX-License-Identifier: Apache-2.0
#include "pipeline/colour.h"

#include <algorithm>
#include <cmath>

namespace saturate {

namespace {

float grey_of(const Planes& image, std::size_t i) {
    if (image.channels == 1) return image.channel[0][i];
    return 0.2989f * image.channel[0][i] + 0.587f * image.channel[1][i] +
           0.114f * image.channel[2][i];
}

float limited(float value) { return std::clamp(value, 0.0f, 255.0f); }

template <typename Function>
void each_pixel(const Planes& image, Function function) {
    for (int y = 0; y < image.height; ++y) {
        std::size_t start = static_cast<std::size_t>(y) * image.stride;
        for (int x = 0; x < image.width; ++x) function(start + static_cast<std::size_t>(x));
    }
}

void brighten(const Planes& image, float factor) {
    each_pixel(image, [&](std::size_t i) {
        for (int c = 0; c < image.channels; ++c)
            image.channel[c][i] = limited(image.channel[c][i] * factor);
    });
}

void contrast(const Planes& image, float factor) {
    double sum = 0;
    each_pixel(image, [&](std::size_t i) { sum += grey_of(image, i); });
    float mean = static_cast<float>(sum / (static_cast<double>(image.width) * image.height));
    float rest = (1 - factor) * mean;
    each_pixel(image, [&](std::size_t i) {
        for (int c = 0; c < image.channels; ++c)
            image.channel[c][i] = limited(image.channel[c][i] * factor + rest);
    });
}

void saturate_colours(const Planes& image, float factor) {
    if (image.channels == 1) return;
    each_pixel(image, [&](std::size_t i) {
        float rest = (1 - factor) * grey_of(image, i);
        for (int c = 0; c < 3; ++c)
            image.channel[c][i] = limited(image.channel[c][i] * factor + rest);
    });
}

// Shifts the hue by `turn`, a fraction of the full circle, in HSV.
void shift_hue(const Planes& image, float turn) {
    if (image.channels == 1) return;
    each_pixel(image, [&](std::size_t i) {
        float r = image.channel[0][i], g = image.channel[1][i], b = image.channel[2][i];
        float high = std::max({r, g, b}), low = std::min({r, g, b}), chroma = high - low;
        if (chroma <= 0) return;  // grey has no hue
        float hue = high == r   ? (g - b) / chroma
                    : high == g ? 2 + (b - r) / chroma
                                : 4 + (r - g) / chroma;
        hue = hue / 6 + turn;
        hue = (hue - std::floor(hue)) * 6;
        for (int c = 0; c < 3; ++c) {
            // The usual piecewise form around the circle: full, falling, none, rising.
            float k = std::fmod(static_cast<float>(c == 0 ? 5 : c == 1 ? 3 : 1) + hue, 6.0f);
            float share = std::clamp(std::min(k, 4 - k), 0.0f, 1.0f);
            image.channel[c][i] = high - chroma * share;
        }
    });
}

}  // namespace

void apply_jitter(const ImagePlan& plan, const Planes& image) {
    for (ColourStep step : plan.order) {
        switch (step) {
            case ColourStep::brightness:
                if (plan.brightness != 1) brighten(image, static_cast<float>(plan.brightness));
                break;
            case ColourStep::contrast:
                if (plan.contrast != 1) contrast(image, static_cast<float>(plan.contrast));
                break;
            case ColourStep::saturation:
                if (plan.saturation != 1)
                    saturate_colours(image, static_cast<float>(plan.saturation));
                break;
            case ColourStep::hue:
                if (plan.hue != 0) shift_hue(image, static_cast<float>(plan.hue));
                break;
        }
    }
}

}  // namespace saturate
