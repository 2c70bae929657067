// SPDX-License-Identifier: Apache-2.0
// Undoes the filter of one PNG row in place. `above` is the row before, unfiltered, or null for the
// first. Pure function.
#pragma once

#include <cstddef>
#include <cstdint>

namespace saturate {

// `pixel` is the bytes of one pixel, at least 1. False for a filter that PNG does not have.
[[nodiscard]] bool png_unfilter(int filter, std::uint8_t* row, const std::uint8_t* above,
                                std::size_t bytes, std::size_t pixel);

}  // namespace saturate
