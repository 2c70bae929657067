// SPDX-License-Identifier: Apache-2.0
// Reads the one EXIF tag that changes pixels. The block is a small TIFF file from an untrusted
// source: every offset is checked.
#include <cstring>

#include "pipeline/decode_jpeg.h"

namespace saturate {

namespace {

constexpr unsigned kOrientationTag = 0x0112;
constexpr unsigned kShortType = 3;

unsigned number(Bytes tiff, std::size_t at, int count, bool big) {
    unsigned value = 0;
    for (int i = 0; i < count; ++i)
        value |= static_cast<unsigned>(tiff[at + i]) << 8 * (big ? count - 1 - i : i);
    return value;
}

}  // namespace

int exif_orientation(Bytes block) {
    if (block.size() < 14 || std::memcmp(block.data(), "Exif\0\0", 6) != 0) return 1;
    Bytes tiff = block.subspan(6);
    bool big = tiff[0] == 'M';
    std::size_t directory = number(tiff, 4, 4, big);
    if (directory > tiff.size() || tiff.size() - directory < 2) return 1;
    std::size_t entries = number(tiff, directory, 2, big);
    for (std::size_t i = 0; i < entries; ++i) {
        std::size_t at = directory + 2 + 12 * i;
        if (at + 12 > tiff.size()) return 1;
        if (number(tiff, at, 2, big) != kOrientationTag) continue;
        if (number(tiff, at + 2, 2, big) != kShortType) return 1;
        unsigned value = number(tiff, at + 8, 2, big);
        return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
    return 1;
}

}  // namespace saturate
