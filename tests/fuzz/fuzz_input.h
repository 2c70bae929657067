// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share: a promise that ends the run when it does not hold, and choices that
// are drawn from the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace saturate {

inline void require(bool holds) {
    if (!holds) std::abort();
}

struct Bytes {
    const std::uint8_t* data;
    std::size_t size;
    std::uint8_t next() {
        if (size == 0) return 0;
        --size;
        return *data++;
    }
    std::size_t below(std::size_t limit) {
        std::size_t high = next();
        return (high * 256 + next()) % limit;
    }
};

}  // namespace saturate
