// SPDX-License-Identifier: Apache-2.0
// Writes an 8-bit image, grey or RGB, as a JPEG or PNG file: for generated data and tests. Any
// thread. The write_* functions throw what write_file_whole throws.
#pragma once

#include <filesystem>
#include <string>

#include "pipeline/image.h"

namespace saturate {

struct JpegWriteSettings {
    int quality = 90;        // 1 to 100
    bool subsampled = true;  // chroma at half size (4:2:0), as cameras and Pillow write it
    bool progressive = false;
    int orientation = 1;  // EXIF tag; 1 writes none
};

// 0: fast, 9: small.
struct PngWriteSettings {
    int level = 6;
};

[[nodiscard]] std::string encode_jpeg(const ImageView& image,
                                      const JpegWriteSettings& settings = {});
[[nodiscard]] std::string encode_png(const ImageView& image, const PngWriteSettings& settings = {});
void write_jpeg(const std::filesystem::path& path, const ImageView& image,
                const JpegWriteSettings& settings = {});
void write_png(const std::filesystem::path& path, const ImageView& image,
               const PngWriteSettings& settings = {});

}  // namespace saturate
