// SPDX-License-Identifier: Apache-2.0
#include "pipeline/decode_jpeg.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "pipeline/image_support.h"

namespace saturate {
namespace {

// The wanted region as it stands in the decoded pixels, which begin at a whole pixel.
Picture cut(const Decoded& decoded, int channels) {
    Picture picture{
        {}, {static_cast<int>(decoded.width), static_cast<int>(decoded.height)}, channels};
    for (int y = 0; y < picture.size.height; ++y) {
        const std::uint8_t* row = decoded.view.row(static_cast<int>(decoded.y) + y) +
                                  static_cast<std::size_t>(decoded.x) * channels;
        picture.pixels.insert(picture.pixels.end(), row, row + picture.size.width * channels);
    }
    return picture;
}

Picture decode_region(const std::string& file, DecodeSettings settings, const Region& wanted) {
    ImageDecoder decoder(settings);
    (void)decoder.open(bytes_of(file));
    return cut(decoder.decode(wanted, {wanted.width, wanted.height}), settings.channels);
}

Picture cut(const Picture& picture, const Region& region) {
    Decoded decoded{picture.view(), static_cast<double>(region.x), static_cast<double>(region.y),
                    static_cast<double>(region.width), static_cast<double>(region.height)};
    return cut(decoded, picture.channels);
}

double mean_difference(const Picture& a, const Picture& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(a.pixels[i] - b.pixels[i]);
    return sum / static_cast<double>(a.pixels.size());
}

TEST(DecodeJpegTest, GivesBackWhatWasWritten) {
    for (int channels : {1, 3}) {
        Picture picture = make_picture(61, 47, channels);
        std::string file = encode_jpeg(picture.view(), {.quality = 98, .subsampled = false});
        Picture seen = decode_whole(file, {.channels = channels});
        ASSERT_EQ(seen.size, picture.size);
        EXPECT_LT(mean_difference(seen, picture), 1.5) << channels;
    }
}

TEST(DecodeJpegTest, RegionHasTheSamePixelsAsTheWholeImage) {
    for (bool progressive : {false, true}) {
        for (bool subsampled : {false, true}) {
            for (int channels : {1, 3}) {
                Picture picture = make_picture(163, 121, 3);
                std::string file = encode_jpeg(
                    picture.view(), {.subsampled = subsampled, .progressive = progressive});
                DecodeSettings full{.channels = channels, .jpeg = JpegDecode::full};
                DecodeSettings part{.channels = channels, .jpeg = JpegDecode::region};
                Picture whole = decode_whole(file, full);
                for (Region region :
                     {Region{0, 0, 163, 121}, Region{1, 1, 1, 1}, Region{15, 15, 33, 34},
                      Region{16, 16, 32, 32}, Region{17, 31, 100, 60}, Region{150, 100, 13, 21},
                      Region{0, 64, 163, 57}, Region{95, 0, 40, 121}}) {
                    EXPECT_EQ(decode_region(file, part, region).pixels, cut(whole, region).pixels)
                        << fmt::format("{},{} {}x{} progressive {} subsampled {} channels {}",
                                       region.x, region.y, region.width, region.height, progressive,
                                       subsampled, channels);
                }
            }
        }
    }
}

// What each orientation does to the pixel that stands at (x, y) of the upright picture.
TEST(DecodeJpegTest, TurnsUprightAsTheCameraSays) {
    Picture picture = make_picture(48, 32, 1);
    for (int orientation = 1; orientation <= 8; ++orientation) {
        std::string file =
            encode_jpeg(picture.view(), {.quality = 100, .orientation = orientation});
        Picture stored = decode_whole(file, {.channels = 1, .exif_orientation = false});
        Picture upright = decode_whole(file, {.channels = 1});
        bool sideways = orientation >= 5;
        ASSERT_EQ(upright.size, (sideways ? ImageSize{32, 48} : ImageSize{48, 32}));
        for (int y = 0; y < upright.size.height; ++y) {
            for (int x = 0; x < upright.size.width; ++x) {
                int w = stored.size.width - 1, h = stored.size.height - 1;
                // EXIF 2.3, tag 274, where the zeroth row and column of the picture are.
                int u = 0, v = 0;
                switch (orientation) {
                    case 1:
                        u = x, v = y;
                        break;
                    case 2:
                        u = w - x, v = y;
                        break;
                    case 3:
                        u = w - x, v = h - y;
                        break;
                    case 4:
                        u = x, v = h - y;
                        break;
                    case 5:
                        u = y, v = x;
                        break;
                    case 6:
                        u = y, v = h - x;
                        break;
                    case 7:
                        u = w - y, v = h - x;
                        break;
                    case 8:
                        u = w - y, v = x;
                        break;
                }
                ASSERT_EQ(upright.at(x, y, 0), stored.at(u, v, 0))
                    << orientation << " at " << x << "," << y;
            }
        }
    }
}

TEST(DecodeJpegTest, RegionIsOfTheUprightImage) {
    Picture picture = make_picture(160, 96, 3);
    for (int orientation = 1; orientation <= 8; ++orientation) {
        std::string file = encode_jpeg(picture.view(), {.orientation = orientation});
        Picture upright = decode_whole(file, {.jpeg = JpegDecode::full});
        Region region{21, 34, 50, 40};
        EXPECT_EQ(decode_region(file, {.jpeg = JpegDecode::region}, region).pixels,
                  cut(upright, region).pixels)
            << orientation;
    }
}

TEST(DecodeJpegTest, ScalesInTheTransformWhenTheTargetIsSmall) {
    Picture picture = make_picture(400, 320, 3);
    std::string file = encode_jpeg(picture.view());
    ImageDecoder decoder({.jpeg = JpegDecode::scaled});
    struct Case {
        int target, width, height;
    };
    for (Case c : {Case{300, 400, 320}, Case{160, 200, 160}, Case{80, 100, 80}, Case{40, 50, 40},
                   Case{10, 50, 40}}) {
        (void)decoder.open(bytes_of(file));
        const Decoded& decoded = decoder.decode({0, 0, 400, 320}, {c.target, c.target});
        EXPECT_EQ(decoded.view.size, (ImageSize{c.width, c.height})) << c.target;
    }
    // Far from the edges: the region keeps its place to a fraction of a pixel.
    (void)decoder.open(bytes_of(file));
    const Decoded& decoded = decoder.decode({101, 50, 203, 120}, {50, 30});
    EXPECT_DOUBLE_EQ(decoded.width, 203 / 4.0);
    double left = 101 / 4.0 - decoded.x;  // first decoded column
    EXPECT_EQ(left, std::floor(left));
}

TEST(DecodeJpegTest, ReadsInkAsLight) {
    // 8x8 CMYK as Pillow writes it (Adobe marker, inverted), colour (200, 100, 50).
    std::string file = read_file(std::string(SATURATE_SOURCE_DIR) + "/tests/pipeline/data/cmyk.jpg",
                                 1 << 20, "an image");
    Picture picture = decode_whole(file, {.channels = 3});
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(picture.at(4, 4, c), (std::array{200, 100, 50})[c], 3);
    Picture grey = decode_whole(file, {.channels = 1});
    EXPECT_NEAR(grey.at(4, 4, 0), 0.299 * 200 + 0.587 * 100 + 0.114 * 50, 3);
}

TEST(DecodeJpegTest, EveryShorterFileIsRefusedOrTheSame) {
    Picture picture = make_picture(40, 24, 3);
    for (bool progressive : {false, true}) {
        std::string file = encode_jpeg(picture.view(), {.progressive = progressive});
        Picture whole = decode_whole(file, {.jpeg = JpegDecode::full});
        int refused = 0;
        for (std::size_t length = 0; length < file.size(); ++length) {
            try {
                // Only what follows the last row may be missing unnoticed.
                EXPECT_EQ(decode_whole(file.substr(0, length), {.jpeg = JpegDecode::full}).pixels,
                          whole.pixels)
                    << length;
            } catch (const BadImage& bad) {
                EXPECT_STRNE(bad.what(), "");
                ++refused;
            }
        }
        EXPECT_GE(refused, static_cast<int>(file.size()) - 4);
    }
}

TEST(DecodeJpegTest, DecodesTheNextFileAfterABrokenOne) {
    Picture picture = make_picture(64, 64, 3);
    std::string file = encode_jpeg(picture.view());
    ImageDecoder decoder({});
    (void)decoder.open(bytes_of(file));
    std::string half = file.substr(0, file.size() / 2);
    (void)decoder.open(bytes_of(half));
    EXPECT_THROW((void)decoder.decode({0, 0, 64, 64}, {64, 64}), BadImage);
    (void)decoder.open(bytes_of(file));
    EXPECT_EQ(decoder.decode({0, 0, 64, 64}, {64, 64}).view.size, (ImageSize{64, 64}));
}

TEST(DecodeJpegTest, RefusesSizesBeyondTheLimit) {
    std::string file = encode_jpeg(make_picture(8, 8, 1).view());
    std::size_t frame = file.find("\xFF\xC0");
    ASSERT_NE(frame, std::string::npos);
    for (std::size_t i = frame + 5; i < frame + 9; ++i) file[i] = '\xFF';
    ImageDecoder decoder({});
    try {
        (void)decoder.open(bytes_of(file));
        FAIL();
    } catch (const BadImage& bad) {
        EXPECT_STREQ(bad.what(), "Maximum supported image dimension is 65500 pixels");
    }
}

TEST(ExifTest, BelievesNoOffset) {
    std::string block("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0",
                      32);
    EXPECT_EQ(exif_orientation(bytes_of(block)), 6);
    for (std::size_t length = 0; length < 28; ++length)
        EXPECT_EQ(exif_orientation(bytes_of(block).subspan(0, length)), length >= 28 ? 6 : 1);
    for (std::size_t at = 0; at < block.size(); ++at) {
        for (int value : {0, 7, 0x7F, 0xFF}) {
            std::string changed = block;
            changed[at] = static_cast<char>(value);
            int orientation = exif_orientation(bytes_of(changed));
            EXPECT_GE(orientation, 1);
            EXPECT_LE(orientation, 8);
        }
    }
}

}  // namespace
}  // namespace saturate
