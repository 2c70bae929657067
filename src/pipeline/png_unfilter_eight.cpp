// SPDX-License-Identifier: Apache-2.0
#include "pipeline/png_unfilter.h"

#if defined(__SSE2__)
#include <emmintrin.h>

#include <algorithm>

namespace saturate {

namespace {

constexpr int kRows = 8;

// Transposes eight rows of eight bytes; only the lower half of each register is used.
void transpose(__m128i (&rows)[kRows]) {
    __m128i pairs[4], quads[4];
    for (int i = 0; i < 4; ++i) pairs[i] = _mm_unpacklo_epi8(rows[2 * i], rows[2 * i + 1]);
    for (int i = 0; i < 2; ++i) {
        quads[2 * i] = _mm_unpacklo_epi16(pairs[2 * i], pairs[2 * i + 1]);
        quads[2 * i + 1] = _mm_unpackhi_epi16(pairs[2 * i], pairs[2 * i + 1]);
    }
    for (int i = 0; i < 2; ++i) {
        __m128i low = _mm_unpacklo_epi32(quads[i], quads[i + 2]);
        __m128i high = _mm_unpackhi_epi32(quads[i], quads[i + 2]);
        rows[4 * i] = low;
        rows[4 * i + 1] = _mm_srli_si128(low, 8);
        rows[4 * i + 2] = high;
        rows[4 * i + 3] = _mm_srli_si128(high, 8);
    }
}

__m128i absolute(__m128i value) {
    return _mm_max_epi16(value, _mm_sub_epi16(_mm_setzero_si128(), value));
}

__m128i pick(__m128i mask, __m128i yes, __m128i no) {
    return _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
}

// Masks of the lanes that have each filter: all ones in those lanes.
struct Filters {
    __m128i left, above, average, paeth;
};

__m128i lanes_with(const EightRows& rows, int filter) {
    alignas(16) short mask[kRows];
    for (int r = 0; r < kRows; ++r)
        mask[r] = rows.raw[rows.raw_stride * static_cast<std::size_t>(r)] == filter ? -1 : 0;
    return _mm_load_si128(reinterpret_cast<const __m128i*>(mask));
}

// The value that each lane's filter predicts for its pixel, in 16-bit lanes.
__m128i predicted(const Filters& filters, __m128i left, __m128i up, __m128i corner) {
    __m128i rise = _mm_sub_epi16(up, corner), run = _mm_sub_epi16(left, corner);
    __m128i to_left = absolute(rise), to_up = absolute(run);
    __m128i to_corner = absolute(_mm_add_epi16(rise, run));
    __m128i least = _mm_min_epi16(to_corner, _mm_min_epi16(to_left, to_up));
    __m128i paeth = pick(_mm_cmpeq_epi16(least, to_left), left,
                         pick(_mm_cmpeq_epi16(least, to_up), up, corner));
    __m128i average = _mm_srli_epi16(_mm_add_epi16(left, up), 1);
    __m128i simple =
        _mm_or_si128(_mm_and_si128(filters.left, left), _mm_and_si128(filters.above, up));
    __m128i mixed =
        _mm_or_si128(_mm_and_si128(filters.average, average), _mm_and_si128(filters.paeth, paeth));
    return _mm_or_si128(simple, mixed);
}

// Stores eight pixels of row `r` from `x` on, except those outside the row.
void store(const EightRows& rows, int r, int x, __m128i pixels) {
    std::uint8_t* out = rows.out + rows.out_stride * static_cast<std::size_t>(r);
    if (x >= 0 && x + 8 <= rows.width) {
        _mm_storel_epi64(reinterpret_cast<__m128i*>(out + x), pixels);
        return;
    }
    alignas(16) std::uint8_t bytes[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(bytes), pixels);
    for (int i = std::max(0, -x); i < 8 && x + i < rows.width; ++i) out[x + i] = bytes[i];
}

}  // namespace

bool png_can_unfilter_eight() { return true; }

bool png_unfilter_eight(const EightRows& rows) {
    for (int r = 0; r < kRows; ++r)
        if (rows.raw[rows.raw_stride * static_cast<std::size_t>(r)] > 4) return false;
    const Filters filters{lanes_with(rows, 1), lanes_with(rows, 2), lanes_with(rows, 3),
                          lanes_with(rows, 4)};
    const __m128i zero = _mm_setzero_si128(), byte = _mm_set1_epi16(0xFF);
    const __m128i lane = _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7);
    const __m128i width = _mm_set1_epi16(static_cast<short>(rows.width));
    __m128i last = zero, corner = zero;  // results of the previous step, and the pixels above them
    // At step t row r is at pixel t - r.
    for (int start = 0; start < rows.width + kRows - 1; start += 8) {
        __m128i block[kRows];
        for (int r = 0; r < kRows; ++r)
            block[r] = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(
                rows.raw + 1 + rows.raw_stride * static_cast<std::size_t>(r) + start - r));
        transpose(block);
        for (int i = 0; i < 8; ++i) {
            int t = start + i;
            __m128i first = _mm_cvtsi32_si128(t < rows.width ? rows.above[t] : 0);
            __m128i up = _mm_or_si128(_mm_slli_si128(last, 2), first);
            __m128i sum = _mm_add_epi16(_mm_unpacklo_epi8(block[i], zero),
                                        predicted(filters, last, up, corner));
            // Lanes before their first or after their last pixel stay 0, as the
            // filter rules require.
            __m128i x = _mm_sub_epi16(_mm_set1_epi16(static_cast<short>(t)), lane);
            __m128i within = _mm_andnot_si128(_mm_cmpgt_epi16(zero, x), _mm_cmpgt_epi16(width, x));
            last = _mm_and_si128(sum, _mm_and_si128(within, byte));
            corner = up;
            block[i] = _mm_packus_epi16(last, last);
        }
        transpose(block);
        for (int r = 0; r < kRows; ++r) store(rows, r, start - r, block[r]);
    }
    return true;
}

}  // namespace saturate

#else

namespace saturate {
bool png_can_unfilter_eight() { return false; }
bool png_unfilter_eight(const EightRows&) { return false; }
}  // namespace saturate

#endif
