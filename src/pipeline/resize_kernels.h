// SPDX-License-Identifier: Apache-2.0
// The inner loops of resizing, in plain C++ and for AVX2 with FMA. The fastest that this processor
// supports is chosen once. Pure functions. Private to resize.cpp and its tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace saturate {

struct ChannelScale {
    float scale[3] = {1, 1, 1};
    float bias[3] = {0, 0, 0};
};

// The horizontal taps in the order in which the kernels read them: blocks of eight target pixels.
struct AcrossTable {
    int channels = 0;
    int width = 0;               // target pixels, rounded up to a multiple of eight
    int taps = 0;                // per pixel
    bool copies = false;         // one tap of weight 1, consecutive pixels
    std::vector<int> first;      // per pixel: first float of the mixed row
    std::vector<float> weights;  // RGB: per block, tap and pixel pair (x, x + 4): 4 + 4 equal
                                 // floats; grey: per block and tap: 8 floats
};

struct ResizeKernels {
    // out[i] = sum over k of weights[k] * rows[k * stride + i]
    void (*mix_rows)(const std::uint8_t* rows, std::size_t stride, const float* weights, int taps,
                     std::size_t count, float* out);
    // May read up to 4 floats past the taps.
    void (*across_rgb)(const float* row, const AcrossTable& table, const ChannelScale& scale,
                       float* const* out);
    void (*across_grey)(const float* row, const AcrossTable& table, const ChannelScale& scale,
                        float* const* out);
    const char* name;
};

[[nodiscard]] const ResizeKernels& portable_resize_kernels();
[[nodiscard]] const ResizeKernels* avx2_resize_kernels();  // null if this CPU cannot run them
[[nodiscard]] const ResizeKernels& resize_kernels();       // the fastest ones

}  // namespace saturate
