// SPDX-License-Identifier: Apache-2.0
// The kernels for AVX2 with FMA. Only functions marked SATURATE_AVX2 contain such instructions, so
// that none get into code that the linker shares with other files.
#include "base/cpu_features.h"
#include "pipeline/resize_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define SATURATE_AVX2 __attribute__((target("avx2,fma")))

namespace saturate {

namespace {

SATURATE_AVX2 inline __m256 eight_pixels(const std::uint8_t* from) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}

SATURATE_AVX2 void mix_rows(const std::uint8_t* rows, std::size_t stride, const float* weights,
                            int taps, std::size_t count, float* out) {
    std::size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const std::uint8_t* at = rows + i;
        __m256 weight = _mm256_set1_ps(weights[0]);
        __m256 low = _mm256_mul_ps(eight_pixels(at), weight);
        __m256 high = _mm256_mul_ps(eight_pixels(at + 8), weight);
        for (int k = 1; k < taps; ++k) {
            at += stride;
            weight = _mm256_set1_ps(weights[k]);
            low = _mm256_fmadd_ps(eight_pixels(at), weight, low);
            high = _mm256_fmadd_ps(eight_pixels(at + 8), weight, high);
        }
        _mm256_storeu_ps(out + i, low);
        _mm256_storeu_ps(out + i + 8, high);
    }
    for (; i < count; ++i) {
        float sum = 0;
        for (int k = 0; k < taps; ++k)
            sum += weights[k] * static_cast<float>(rows[stride * static_cast<std::size_t>(k) + i]);
        out[i] = sum;
    }
}

// One pixel in each half: red, green, blue and a fourth value that is ignored.
SATURATE_AVX2 inline __m256 two_pixels(const float* low, const float* high) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

SATURATE_AVX2 void across_rgb(const float* row, const AcrossTable& table, const ChannelScale& scale,
                              float* const* out) {
    const __m256 factor = _mm256_setr_ps(scale.scale[0], scale.scale[1], scale.scale[2], 0,
                                         scale.scale[0], scale.scale[1], scale.scale[2], 0);
    const __m256 bias = _mm256_setr_ps(scale.bias[0], scale.bias[1], scale.bias[2], 0,
                                       scale.bias[0], scale.bias[1], scale.bias[2], 0);
    const float* weight = table.weights.data();
    const int* first = table.first.data();
    for (int x = 0; x < table.width; x += 8, first += 8) {
        __m256 sum[4];
        for (int j = 0; j < 4; ++j) sum[j] = _mm256_setzero_ps();
        for (int k = 0; k < table.taps; ++k, weight += 32) {
            for (int j = 0; j < 4; ++j) {
                __m256 pair = two_pixels(row + first[j] + 3 * k, row + first[j + 4] + 3 * k);
                sum[j] = _mm256_fmadd_ps(pair, _mm256_loadu_ps(weight + 8 * j), sum[j]);
            }
        }
        for (int j = 0; j < 4; ++j) sum[j] = _mm256_fmadd_ps(sum[j], factor, bias);
        // Transposes 4x4 in both halves, from pixels to planes.
        __m256 rg01 = _mm256_unpacklo_ps(sum[0], sum[1]), b01 = _mm256_unpackhi_ps(sum[0], sum[1]);
        __m256 rg23 = _mm256_unpacklo_ps(sum[2], sum[3]), b23 = _mm256_unpackhi_ps(sum[2], sum[3]);
        _mm256_storeu_ps(out[0] + x, _mm256_shuffle_ps(rg01, rg23, _MM_SHUFFLE(1, 0, 1, 0)));
        _mm256_storeu_ps(out[1] + x, _mm256_shuffle_ps(rg01, rg23, _MM_SHUFFLE(3, 2, 3, 2)));
        _mm256_storeu_ps(out[2] + x, _mm256_shuffle_ps(b01, b23, _MM_SHUFFLE(1, 0, 1, 0)));
    }
}

SATURATE_AVX2 void across_grey(const float* row, const AcrossTable& table,
                               const ChannelScale& scale, float* const* out) {
    const __m256 factor = _mm256_set1_ps(scale.scale[0]), bias = _mm256_set1_ps(scale.bias[0]);
    if (table.copies) {
        for (int x = 0; x < table.width; x += 8) {
            __m256 pixels = _mm256_loadu_ps(row + table.first[0] + x);
            _mm256_storeu_ps(out[0] + x, _mm256_fmadd_ps(pixels, factor, bias));
        }
        return;
    }
    const float* weight = table.weights.data();
    for (int x = 0; x < table.width; x += 8) {
        __m256i first =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(table.first.data() + x));
        __m256 sum = _mm256_setzero_ps();
        for (int k = 0; k < table.taps; ++k, weight += 8)
            sum = _mm256_fmadd_ps(_mm256_i32gather_ps(row + k, first, 4), _mm256_loadu_ps(weight),
                                  sum);
        _mm256_storeu_ps(out[0] + x, _mm256_fmadd_ps(sum, factor, bias));
    }
}

constexpr ResizeKernels kAvx2 = {mix_rows, across_rgb, across_grey, "AVX2"};

}  // namespace

const ResizeKernels* avx2_resize_kernels() { return has_avx2_and_fma() ? &kAvx2 : nullptr; }

}  // namespace saturate

#else

namespace saturate {
const ResizeKernels* avx2_resize_kernels() { return nullptr; }
}  // namespace saturate

#endif
