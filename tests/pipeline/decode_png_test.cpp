// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "pipeline/image_support.h"
#include "pipeline/png_by_letter.h"
#include "pipeline/png_unfilter.h"

namespace saturate {
namespace {

TEST(DecodePngTest, GivesBackWhatWasWritten) {
    for (int channels : {1, 3}) {
        for (ImageSize size : {ImageSize{1, 1}, ImageSize{17, 3}, ImageSize{128, 128}}) {
            Picture picture = make_picture(size.width, size.height, channels);
            EXPECT_EQ(decode_whole(encode_png(picture.view()), {.channels = channels}).pixels,
                      picture.pixels);
        }
    }
}

// The byte-by-byte rule of the specification, for rows that the fast paths must match.
TEST(DecodePngTest, FastUnfilteringIsThatOfTheSpecification) {
    for (std::size_t pixel : {1u, 2u, 3u, 4u, 6u, 8u}) {
        std::vector<std::uint8_t> above(pixel * 37), row(pixel * 37);
        std::uint32_t noise = 7;
        for (std::vector<std::uint8_t>* line : {&above, &row}) {
            for (std::uint8_t& value : *line) {
                noise = noise * 1664525 + 1013904223;
                value = static_cast<std::uint8_t>(noise >> 24);
            }
        }
        for (int filter = 0; filter <= 4; ++filter) {
            for (bool first : {false, true}) {
                std::vector<std::uint8_t> expected = row, seen = row;
                for (std::size_t i = 0; i < row.size(); ++i) {
                    int a = i >= pixel ? expected[i - pixel] : 0, b = first ? 0 : above[i];
                    int c = i >= pixel && !first ? above[i - pixel] : 0, p = a + b - c;
                    int pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
                    int paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
                    int guess[] = {0, a, b, (a + b) / 2, paeth};
                    expected[i] = static_cast<std::uint8_t>(row[i] + guess[filter]);
                }
                ASSERT_TRUE(png_unfilter(filter, seen.data(), first ? nullptr : above.data(),
                                         seen.size(), pixel));
                EXPECT_EQ(seen, expected) << pixel << " bytes, filter " << filter << ", " << first;
            }
        }
        EXPECT_FALSE(png_unfilter(5, row.data(), above.data(), row.size(), pixel));
    }
}

TEST(DecodePngTest, EightRowsAtOnceAreThoseOneByOne) {
    if (!png_can_unfilter_eight()) GTEST_SKIP() << "not on this processor";
    std::uint32_t noise = 3;
    auto next = [&] {
        return static_cast<std::uint8_t>((noise = noise * 1664525 + 1013904223) >> 24);
    };
    for (int width : {1, 2, 3, 7, 8, 9, 15, 16, 17, 40, 129}) {
        for (int attempt = 0; attempt < 40; ++attempt) {
            std::size_t w = static_cast<std::size_t>(width), stride = w + 1;
            std::vector<std::uint8_t> raw(8 * stride + kEightRowsSpare), above(w), out(8 * w);
            for (std::uint8_t& value : raw) value = next();
            for (std::uint8_t& value : above) value = attempt % 4 == 0 ? 0 : next();
            for (std::size_t r = 0; r < 8; ++r)
                raw[r * stride] = static_cast<std::uint8_t>(next() % 5);
            ASSERT_TRUE(
                png_unfilter_eight({raw.data(), stride, above.data(), out.data(), w, width}));
            std::vector<std::uint8_t> expected = above;
            for (std::size_t r = 0; r < 8; ++r) {
                std::vector<std::uint8_t> row(raw.begin() + static_cast<long>(r * stride + 1),
                                              raw.begin() + static_cast<long>((r + 1) * stride));
                ASSERT_TRUE(png_unfilter(raw[r * stride], row.data(), expected.data(), w, 1));
                expected = row;
                std::vector<std::uint8_t> seen(out.begin() + static_cast<long>(r * w),
                                               out.begin() + static_cast<long>((r + 1) * w));
                ASSERT_EQ(seen, expected)
                    << width << " wide, row " << r << ", filter " << int{raw[r * stride]};
            }
            raw[3 * stride] = 5;
            EXPECT_FALSE(
                png_unfilter_eight({raw.data(), stride, above.data(), out.data(), w, width}));
        }
    }
}

// As many pixels as are allowed, of eight bytes each: refused by its header alone.
TEST(DecodePngTest, WhatTakesTooMuchMemoryIsRefused) {
    auto said = [](std::uint32_t side, char depth, char colour) -> std::string {
        std::string body = big(side) + big(side) + depth + colour + std::string(3, '\0');
        std::string file = "\x89PNG\r\n\x1A\n" + chunk("IHDR", body);
        try {
            ImageDecoder decoder({});
            (void)decoder.open(bytes_of(file));
            return "";
        } catch (const BadImage& bad) {
            return bad.what();
        }
    };
    EXPECT_EQ(said(13000, 16, 6),
              "13000x13000 pixels of 64 bits take 1289 MB, more than the limit of 512");
    EXPECT_EQ(said(13000, 8, 2), "");
}

TEST(DecodePngTest, EveryShorterFileIsRefused) {
    std::string file = encode_png(make_picture(20, 12, 3).view());
    for (std::size_t length = 0; length < file.size(); ++length)
        EXPECT_THROW((void)decode_whole(file.substr(0, length), {}), BadImage) << length;
}

TEST(DecodePngTest, EveryChangedByteIsRefused) {
    std::string file = encode_png(make_picture(20, 12, 1).view());
    for (std::size_t i = 0; i < file.size(); ++i) {
        std::string changed = file;
        changed[i] = static_cast<char>(changed[i] ^ 0x10);
        EXPECT_THROW((void)decode_whole(changed, {.channels = 1}), BadImage) << i;
    }
}

TEST(SniffTest, GoesByContent) {
    auto said = [](const std::string& file) -> std::string {
        try {
            ImageDecoder decoder({});
            (void)decoder.open(bytes_of(file));
            return "";
        } catch (const BadImage& bad) {
            return bad.what();
        }
    };
    EXPECT_EQ(said(""), "the file is empty");
    EXPECT_EQ(said("GIF89a"), "not a JPEG, PNG or WebP file");
    EXPECT_EQ(said("\x89PNG\r\n\x1A\n"), "PNG ends early");
    EXPECT_EQ(said(std::string("RIFF\0\0\0\0WEBP", 12)), "WebP header is broken");
    EXPECT_EQ(said(encode_png(make_picture(3, 3, 1).view())), "");
    EXPECT_EQ(said(encode_jpeg(make_picture(3, 3, 1).view())), "");
}

}  // namespace
}  // namespace saturate
