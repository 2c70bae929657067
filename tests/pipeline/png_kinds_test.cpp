// SPDX-License-Identifier: Apache-2.0
// Every colour type, depth and interlacing of PNG, written here by the letter of the specification:
// stored deflate blocks, no filter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "pipeline/image_support.h"
#include "pipeline/png_by_letter.h"

namespace saturate {
namespace {

struct Kind {
    int colour = 0;
    int depth = 8;
    bool interlaced = false;
    int samples() const { return colour == 2 ? 3 : colour == 4 ? 2 : colour == 6 ? 4 : 1; }
};

// Sample `s` of pixel (x, y), in the range of the depth.
using Samples = std::function<unsigned(int x, int y, int s)>;

// The pixels (x0 + i dx, y0 + j dy) as rows, each with filter 0.
std::string rows(const Kind& kind, ImageSize size, const Samples& sample, std::array<int, 4> pass) {
    auto [x0, y0, dx, dy] = pass;
    std::string out;
    if (x0 >= size.width) return out;
    for (int y = y0; y < size.height; y += dy) {
        std::string bits;
        for (int x = x0; x < size.width; x += dx) {
            for (int s = 0; s < kind.samples(); ++s) {
                for (int bit = kind.depth - 1; bit >= 0; --bit)
                    bits += sample(x, y, s) >> bit & 1 ? '1' : '0';
            }
        }
        out += '\0';
        for (std::size_t i = 0; i < bits.size(); i += 8) {
            int value = 0;
            for (std::size_t k = i; k < i + 8; ++k)
                value = value * 2 + (k < bits.size() && bits[k] == '1');
            out += static_cast<char>(value);
        }
    }
    return out;
}

std::string png(const Kind& kind, ImageSize size, const Samples& sample, const std::string& extra) {
    std::string raw;
    if (kind.interlaced) {
        for (std::array<int, 4> pass : {std::array{0, 0, 8, 8},
                                        {4, 0, 8, 8},
                                        {0, 4, 4, 8},
                                        {2, 0, 4, 4},
                                        {0, 2, 2, 4},
                                        {1, 0, 2, 2},
                                        {0, 1, 1, 2}})
            raw += rows(kind, size, sample, pass);
    } else {
        raw = rows(kind, size, sample, {0, 0, 1, 1});
    }
    std::string header =
        big(static_cast<std::uint32_t>(size.width)) + big(static_cast<std::uint32_t>(size.height));
    for (int value : {kind.depth, kind.colour, 0, 0, kind.interlaced ? 1 : 0})
        header += static_cast<char>(value);
    return "\x89PNG\r\n\x1A\n" + chunk("IHDR", header) + extra + chunk("IDAT", stored(raw)) +
           chunk("IEND", "");
}

TEST(PngKindsTest, EveryKindIsRead) {
    std::string palette;
    for (int i = 0; i < 256; ++i) {
        palette += static_cast<char>(i * 7);
        palette += static_cast<char>(255 - i);
        palette += static_cast<char>(i ^ 0x55);
    }
    std::vector<Kind> kinds;
    for (bool interlaced : {false, true}) {
        for (int depth : {1, 2, 4, 8, 16}) kinds.push_back({0, depth, interlaced});
        for (int depth : {1, 2, 4, 8}) kinds.push_back({3, depth, interlaced});
        for (int colour : {2, 4, 6}) {
            for (int depth : {8, 16}) kinds.push_back({colour, depth, interlaced});
        }
    }
    for (const Kind& kind : kinds) {
        for (ImageSize size : {ImageSize{1, 1}, ImageSize{3, 2}, ImageSize{19, 13}}) {
            unsigned top = (1u << kind.depth) - 1;
            Samples sample = [&](int x, int y, int s) {
                return static_cast<unsigned>(x * 3671 + y * 911 + s * 12345 + x * y * 77) & top;
            };
            std::string extra;
            if (kind.colour == 3)
                extra = chunk("PLTE", palette.substr(0, 3 * (top + 1))) + chunk("tRNS", "\x01\x80");
            Picture picture = decode_whole(png(kind, size, sample, extra), {});
            ASSERT_EQ(picture.size, size);
            for (int y = 0; y < size.height; ++y) {
                for (int x = 0; x < size.width; ++x) {
                    for (int c = 0; c < 3; ++c) {
                        unsigned value = sample(x, y, kind.samples() >= 3 ? c : 0);
                        unsigned expected = kind.colour == 3
                                                ? static_cast<unsigned char>(
                                                      palette[3 * value + static_cast<unsigned>(c)])
                                            : kind.depth == 16 ? value >> 8
                                                               : value * 255 / top;
                        ASSERT_EQ(picture.at(x, y, c), expected) << fmt::format(
                            "colour {} depth {} interlaced {} {}x{} at {},{}", kind.colour,
                            kind.depth, kind.interlaced, size.width, size.height, x, y);
                    }
                }
            }
        }
    }
}

std::string said(const std::string& file) {
    try {
        (void)decode_whole(file, {});
        return "";
    } catch (const BadImage& bad) {
        return bad.what();
    }
}

TEST(PngKindsTest, SaysWhatIsWrong) {
    Samples zero = [](int, int, int) { return 0u; };
    EXPECT_EQ(said(png({5, 8}, {2, 2}, zero, "")), "PNG with an invalid colour type: 5, 8 bits");
    EXPECT_EQ(said(png({2, 4}, {2, 2}, zero, "")), "PNG with an invalid colour type: 2, 4 bits");
    EXPECT_EQ(said(png({3, 8}, {2, 2}, zero, "")), "PNG has no palette");
    EXPECT_EQ(said(png({3, 8}, {2, 2}, zero, chunk("PLTE", "ab"))),
              "PNG palette has a wrong length");
    auto header = [](std::uint32_t width, std::uint32_t height) {
        return "\x89PNG\r\n\x1A\n" +
               chunk("IHDR", big(width) + big(height) + std::string("\x08\x02\0\0\0", 5)) +
               chunk("IDAT", stored("x")) + chunk("IEND", "");
    };
    EXPECT_EQ(said(header(0, 4)), "an image of 0x4 pixels");
    EXPECT_EQ(said(header(70'000, 1)), "70000x1 pixels, more than the limit of 178 million");
    EXPECT_EQ(said(header(65'000, 65'000)),
              "65000x65000 pixels, more than the limit of 178 million");
    // 300 MB promised by a few bytes: refused before memory is taken.
    EXPECT_EQ(said(header(10'000, 10'000)), "PNG ends early");
    EXPECT_EQ(said(header(2, 2)), "PNG has fewer rows than its header says");
}

}  // namespace
}  // namespace saturate
