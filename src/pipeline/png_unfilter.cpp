// SPDX-License-Identifier: Apache-2.0
#include "pipeline/png_unfilter.h"

#include <cstdlib>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace saturate {

namespace {

std::uint8_t paeth(int left, int up, int corner) {
    int to_left = std::abs(up - corner), to_up = std::abs(left - corner);
    int to_corner = std::abs(up + left - 2 * corner);
    if (to_left <= to_up && to_left <= to_corner) return static_cast<std::uint8_t>(left);
    return static_cast<std::uint8_t>(to_up <= to_corner ? up : corner);
}

// With one byte per pixel the left pixel stays in a register: reading back a byte just written
// would cost several times as much.
void add_left(std::uint8_t* row, std::size_t bytes, std::size_t pixel) {
    if (pixel == 1) {
        std::uint8_t left = 0;
        for (std::size_t i = 0; i < bytes; ++i)
            row[i] = left = static_cast<std::uint8_t>(left + row[i]);
        return;
    }
    for (std::size_t i = pixel; i < bytes; ++i)
        row[i] = static_cast<std::uint8_t>(row[i] + row[i - pixel]);
}

void add_above(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes) {
    std::size_t i = 0;
#if defined(__SSE2__)
    for (; i + 16 <= bytes; i += 16) {
        __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + i));
        __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(above + i));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(row + i), _mm_add_epi8(a, b));
    }
#endif
    for (; i < bytes; ++i) row[i] = static_cast<std::uint8_t>(row[i] + above[i]);
}

void add_average(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes,
                 std::size_t pixel) {
    if (pixel == 1) {
        int left = 0;
        for (std::size_t i = 0; i < bytes; ++i) {
            left = (row[i] + (left + (above ? above[i] : 0)) / 2) & 0xFF;
            row[i] = static_cast<std::uint8_t>(left);
        }
        return;
    }
    for (std::size_t i = 0; i < bytes; ++i) {
        int left = i >= pixel ? row[i - pixel] : 0, up = above ? above[i] : 0;
        row[i] = static_cast<std::uint8_t>(row[i] + (left + up) / 2);
    }
}

// For 8-bit grey, by far the most common kind with one byte per pixel. Left and corner stay in
// registers, and everything independent of the previous pixel is computed ahead of it.
void add_paeth_grey(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes) {
    int left = 0, corner = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
        int up = above[i];
        int rise = up - corner;  // |rise| is the distance to left
        int to_left = std::abs(rise);
        int run = left - corner;  // |run| is the distance to up
        int to_up = std::abs(run);
        int to_corner = std::abs(run + rise);
        int best = to_up <= to_corner ? up : corner;
        int least = to_up <= to_corner ? to_up : to_corner;
        best = to_left <= least ? left : best;
        left = (row[i] + best) & 0xFF;
        row[i] = static_cast<std::uint8_t>(left);
        corner = up;
    }
}

void add_paeth(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes, std::size_t pixel) {
    for (std::size_t i = 0; i < pixel && i < bytes; ++i)
        row[i] = static_cast<std::uint8_t>(row[i] + above[i]);
    for (std::size_t i = pixel; i < bytes; ++i)
        row[i] =
            static_cast<std::uint8_t>(row[i] + paeth(row[i - pixel], above[i], above[i - pixel]));
}

#if defined(__SSE2__)
__m128i load_pixel(const std::uint8_t* from, std::size_t pixel) {
    int value = 0;
    std::memcpy(&value, from, pixel);
    return _mm_cvtsi32_si128(value);
}

void store_pixel(std::uint8_t* to, __m128i value, std::size_t pixel) {
    int word = _mm_cvtsi128_si32(value);
    std::memcpy(to, &word, pixel);
}

__m128i absolute(__m128i value) {
    return _mm_max_epi16(value, _mm_sub_epi16(_mm_setzero_si128(), value));
}

__m128i pick(__m128i mask, __m128i yes, __m128i no) {
    return _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
}

// All channels of a pixel at once, in 16-bit lanes. `pixel` is 3 or 4.
template <std::size_t pixel>
void add_paeth_sse2(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes) {
    const __m128i zero = _mm_setzero_si128();
    __m128i left = zero, corner = zero;
    for (std::size_t i = 0; i + pixel <= bytes; i += pixel) {
        __m128i up = _mm_unpacklo_epi8(load_pixel(above + i, pixel), zero);
        __m128i rise = _mm_sub_epi16(up, corner), run = _mm_sub_epi16(left, corner);
        __m128i to_left = absolute(rise), to_up = absolute(run);
        __m128i to_corner = absolute(_mm_add_epi16(rise, run));
        __m128i least = _mm_min_epi16(to_corner, _mm_min_epi16(to_left, to_up));
        __m128i best = pick(_mm_cmpeq_epi16(least, to_left), left,
                            pick(_mm_cmpeq_epi16(least, to_up), up, corner));
        __m128i sum = _mm_add_epi8(_mm_unpacklo_epi8(load_pixel(row + i, pixel), zero), best);
        store_pixel(row + i, _mm_packus_epi16(sum, sum), pixel);
        left = sum;
        corner = up;
    }
}

template <std::size_t pixel>
void add_left_sse2(std::uint8_t* row, std::size_t bytes) {
    __m128i left = _mm_setzero_si128();
    for (std::size_t i = 0; i + pixel <= bytes; i += pixel) {
        left = _mm_add_epi8(left, load_pixel(row + i, pixel));
        store_pixel(row + i, left, pixel);
    }
}
#endif

void any_paeth(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes, std::size_t pixel) {
    if (pixel == 1) return add_paeth_grey(row, above, bytes);
#if defined(__SSE2__)
    if (pixel == 3) return add_paeth_sse2<3>(row, above, bytes);
    if (pixel == 4) return add_paeth_sse2<4>(row, above, bytes);
#endif
    add_paeth(row, above, bytes, pixel);
}

void any_left(std::uint8_t* row, std::size_t bytes, std::size_t pixel) {
#if defined(__SSE2__)
    if (pixel == 3) return add_left_sse2<3>(row, bytes);
    if (pixel == 4) return add_left_sse2<4>(row, bytes);
#endif
    add_left(row, bytes, pixel);
}

}  // namespace

bool png_unfilter(int filter, std::uint8_t* row, const std::uint8_t* above, std::size_t bytes,
                  std::size_t pixel) {
    switch (filter) {
        case 0:
            return true;
        case 1:
            any_left(row, bytes, pixel);
            return true;
        case 2:
            if (above) add_above(row, above, bytes);
            return true;
        case 3:
            add_average(row, above, bytes, pixel);
            return true;
        case 4:
            // Without a row above, Paeth picks the left pixel.
            if (above)
                any_paeth(row, above, bytes, pixel);
            else
                any_left(row, bytes, pixel);
            return true;
        default:
            return false;
    }
}

}  // namespace saturate
