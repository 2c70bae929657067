// SPDX-License-Identifier: Apache-2.0
// Pictures for tests of decoding and transforms, made by a formula so that every test knows the
// expected pixels.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/file.h"
#include "pipeline/image_decode.h"
#include "pipeline/image_write.h"
#include "support/run.h"

namespace saturate {

// An image that owns its pixels.
struct Picture {
    std::vector<std::uint8_t> pixels;
    ImageSize size;
    int channels = 0;

    [[nodiscard]] ImageView view() const {
        return {pixels.data(), size, channels, static_cast<std::size_t>(size.width) * channels};
    }
    [[nodiscard]] std::uint8_t at(int x, int y, int c) const {
        return pixels[(static_cast<std::size_t>(y) * size.width + x) * channels + c];
    }
};

// Makes smooth waves with an edge and some noise. Without symmetry, so that a wrong rotation shows.
inline Picture make_picture(int width, int height, int channels) {
    Picture picture{{}, {width, height}, channels};
    std::uint32_t noise = 1;
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            for (int c = 0; c < channels; ++c) {
                noise = noise * 1664525 + 1013904223;
                double wave = 110 + 60 * std::sin(x * 0.07 * (c + 1)) + 40 * std::cos(y * 0.05 + c);
                if (x > width / 3 && y < height / 2) wave += 30;
                wave += static_cast<double>(noise >> 24) / 16;
                picture.pixels.push_back(
                    static_cast<std::uint8_t>(std::fmin(255, std::fmax(0, wave))));
            }
        }
    }
    return picture;
}

inline Bytes bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Decodes the whole image, upright.
inline Picture decode_whole(const std::string& file, DecodeSettings settings) {
    ImageDecoder decoder(settings);
    ImageSize size = decoder.open(bytes_of(file));
    const Decoded& decoded = decoder.decode({0, 0, size.width, size.height}, size);
    Picture picture{{}, decoded.view.size, settings.channels};
    for (int y = 0; y < picture.size.height; ++y) {
        const std::uint8_t* row = decoded.view.row(y);
        picture.pixels.insert(picture.pixels.end(), row,
                              row + picture.size.width * settings.channels);
    }
    return picture;
}

}  // namespace saturate
