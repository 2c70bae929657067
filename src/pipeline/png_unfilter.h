// SPDX-License-Identifier: Apache-2.0
// Undoes the filters of PNG rows. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace saturate {

// One row in place. `above` is the row before, unfiltered, or null for the first; `pixel` the bytes
// of one pixel, at least 1. False for a filter that PNG does not have.
[[nodiscard]] bool png_unfilter(int filter, std::uint8_t* row, const std::uint8_t* above,
                                std::size_t bytes, std::size_t pixel);

// Eight rows of one byte a pixel at once, whatever their filters. Each row waits only for the pixel
// above, so row r works one pixel behind row r - 1, each in its own lane: about three times as fast
// as row by row on photographs, where a Paeth filter's choice cannot be predicted.
struct EightRows {
    const std::uint8_t* raw = nullptr;    // the filter byte of the first row; bytes beyond the
    std::size_t raw_stride = 0;           // last row are read, not used: kEightRowsSpare
    const std::uint8_t* above = nullptr;  // the row before, unfiltered; zeros for the first
    std::uint8_t* out = nullptr;
    std::size_t out_stride = 0;
    int width = 0;
};
inline constexpr int kEightRowsWidthMax = 32'000;
inline constexpr std::size_t kEightRowsSpare = 16;
[[nodiscard]] bool png_can_unfilter_eight();  // false where only one row at a time is written
[[nodiscard]] bool png_unfilter_eight(const EightRows& rows);  // false as above

}  // namespace saturate
