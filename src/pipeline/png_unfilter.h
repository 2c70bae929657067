// SPDX-License-Identifier: Apache-2.0
// Undoes the filters of PNG rows. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace saturate {

// Unfilters one row in place. `above` is the unfiltered row before, or null for the first row;
// `pixel` is the number of bytes per pixel, at least 1. Returns false for an invalid filter.
[[nodiscard]] bool png_unfilter(int filter, std::uint8_t* row, const std::uint8_t* above,
                                std::size_t bytes, std::size_t pixel);

// Unfilters eight rows of one byte per pixel at once, whatever their filters. A row only needs the
// pixels above it, so row r works one pixel behind row r - 1, each in its own lane. On photographs
// this is about three times as fast as row by row, because a Paeth filter's
// choice is unpredictable.
struct EightRows {
    const std::uint8_t* raw = nullptr;    // the filter byte of the first row; kEightRowsSpare
    std::size_t raw_stride = 0;           // bytes beyond the last row are read but not used
    const std::uint8_t* above = nullptr;  // the unfiltered row before; zeros for the first row
    std::uint8_t* out = nullptr;
    std::size_t out_stride = 0;
    int width = 0;
};
inline constexpr int kEightRowsWidthMax = 32'000;
inline constexpr std::size_t kEightRowsSpare = 16;
[[nodiscard]] bool png_can_unfilter_eight();                   // false without SIMD code
[[nodiscard]] bool png_unfilter_eight(const EightRows& rows);  // false: invalid filter

}  // namespace saturate
