// SPDX-License-Identifier: Apache-2.0
#include "pipeline/resize_kernels.h"

namespace saturate {

namespace {

void mix_rows(const std::uint8_t* rows, std::size_t stride, const float* weights, int taps,
              std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = weights[0] * static_cast<float>(rows[i]);
    for (int k = 1; k < taps; ++k) {
        const std::uint8_t* row = rows + stride * static_cast<std::size_t>(k);
        for (std::size_t i = 0; i < count; ++i) out[i] += weights[k] * static_cast<float>(row[i]);
    }
}

void across_rgb(const float* row, const AcrossTable& table, const ChannelScale& scale,
                float* const* out) {
    for (int x = 0; x < table.width; ++x) {
        const float* pixel = row + table.first[x];
        // Index by block, then by half: pixels 0-3 are in the lower lanes, 4-7 in the upper.
        const float* weight = table.weights.data() +
                              static_cast<std::size_t>(x / 8) * table.taps * 32 + x % 4 * 8 +
                              x % 8 / 4 * 4;
        float sum[3] = {0, 0, 0};
        for (int k = 0; k < table.taps; ++k)
            for (int c = 0; c < 3; ++c) sum[c] += weight[k * 32] * pixel[3 * k + c];
        for (int c = 0; c < 3; ++c) out[c][x] = sum[c] * scale.scale[c] + scale.bias[c];
    }
}

void across_grey(const float* row, const AcrossTable& table, const ChannelScale& scale,
                 float* const* out) {
    for (int x = 0; x < table.width; ++x) {
        const float* pixel = row + table.first[x];
        const float* weight =
            table.weights.data() + static_cast<std::size_t>(x / 8) * table.taps * 8 + x % 8;
        float sum = 0;
        for (int k = 0; k < table.taps; ++k) sum += weight[k * 8] * pixel[k];
        out[0][x] = sum * scale.scale[0] + scale.bias[0];
    }
}

constexpr ResizeKernels kPortable = {mix_rows, across_rgb, across_grey, "portable"};

}  // namespace

const ResizeKernels& portable_resize_kernels() { return kPortable; }

const ResizeKernels& resize_kernels() {
    static const ResizeKernels& kBest =
        avx2_resize_kernels() ? *avx2_resize_kernels() : portable_resize_kernels();
    return kBest;
}

}  // namespace saturate
