// SPDX-License-Identifier: Apache-2.0
// The files are 17x11 with red 15 x, green 23 y and blue 5 x y, modulo 256, as Pillow wrote them.
#include <gtest/gtest.h>

#include <array>

#include "pipeline/image_support.h"

namespace saturate {
namespace {

std::string data(const std::string& name) {
    return read_file(std::string(SATURATE_SOURCE_DIR) + "/tests/pipeline/data/" + name, 1 << 20,
                     "an image");
}

std::array<int, 3> expected(int x, int y) { return {x * 15 % 256, y * 23 % 256, x * y * 5 % 256}; }

TEST(DecodeWebpTest, LosslessIsExact) {
    Picture picture = decode_whole(data("lossless.webp"), {});
    ASSERT_EQ(picture.size, (ImageSize{17, 11}));
    Picture grey = decode_whole(data("lossless.webp"), {.channels = 1});
    for (int y = 0; y < 11; ++y) {
        for (int x = 0; x < 17; ++x) {
            std::array<int, 3> rgb = expected(x, y);
            for (int c = 0; c < 3; ++c) EXPECT_EQ(picture.at(x, y, c), rgb[c]) << x << "," << y;
            EXPECT_NEAR(grey.at(x, y, 0), 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2], 0.6);
        }
    }
}

TEST(DecodeWebpTest, LossyIsNear) {
    Picture picture = decode_whole(data("lossy.webp"), {});
    ASSERT_EQ(picture.size, (ImageSize{17, 11}));
    double sum = 0;
    for (int y = 0; y < 11; ++y) {
        for (int x = 0; x < 17; ++x) {
            for (int c = 0; c < 3; ++c) sum += std::abs(picture.at(x, y, c) - expected(x, y)[c]);
        }
    }
    EXPECT_LT(sum / (17 * 11 * 3), 15);  // chroma at half size smears steps of up to 255
}

TEST(DecodeWebpTest, AnAnimationIsRefused) {
    try {
        (void)decode_whole(data("animated.webp"), {});
        FAIL();
    } catch (const BadImage& bad) {
        EXPECT_STREQ(bad.what(), "an animated WebP, not one image");
    }
}

TEST(DecodeWebpTest, EveryShorterFileIsRefused) {
    for (const char* name : {"lossless.webp", "lossy.webp"}) {
        std::string file = data(name);
        for (std::size_t length = 0; length + 1 < file.size(); ++length)
            EXPECT_THROW((void)decode_whole(file.substr(0, length), {}), BadImage)
                << name << " " << length;
    }
}

}  // namespace
}  // namespace saturate
