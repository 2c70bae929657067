// SPDX-License-Identifier: Apache-2.0
// Shared by the fuzz targets: a check that aborts the run if it fails, and choices drawn from the
// input.
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
