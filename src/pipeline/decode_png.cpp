// SPDX-License-Identifier: Apache-2.0
#include "pipeline/decode_png.h"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "pipeline/png_unfilter.h"

namespace saturate {

namespace {

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kChunkOverhead = 12;  // length, name, CRC
// Deflate's best ratio. A file that claims more is rejected before memory is allocated for it.
constexpr std::uint64_t kDeflateRatioMax = 1032;

enum ColourType { kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgbAlpha = 6 };

std::uint32_t big_endian(const std::uint8_t* at) {
    return static_cast<std::uint32_t>(at[0]) << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

std::uint8_t luma(int red, int green, int blue) {
    return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16);
}

struct Header {
    ImageSize size;
    int depth = 0;
    int colour = 0;
    bool interlaced = false;

    [[nodiscard]] int samples() const {  // per pixel
        switch (colour) {
            case kRgb:
                return 3;
            case kGreyAlpha:
                return 2;
            case kRgbAlpha:
                return 4;
            default:
                return 1;
        }
    }
    [[nodiscard]] std::size_t pixel_bytes() const {
        return static_cast<std::size_t>(std::max(1, samples() * depth / 8));
    }
    [[nodiscard]] std::size_t row_bytes(int width) const {
        return (static_cast<std::size_t>(width) * samples() * depth + 7) / 8;
    }
};

Header read_header(Bytes body) {
    if (body.size() != 13) throw BadImage("PNG header has a wrong length");
    Header header;
    std::uint32_t width = big_endian(body.data()), height = big_endian(body.data() + 4);
    check_image_size(width, height);
    header.size = {static_cast<int>(width), static_cast<int>(height)};
    header.depth = body[8];
    header.colour = body[9];
    int d = header.depth;
    bool small = d == 1 || d == 2 || d == 4;
    bool fits = header.colour == kGrey      ? small || d == 8 || d == 16
                : header.colour == kPalette ? small || d == 8
                : header.colour == kRgb || header.colour == kGreyAlpha || header.colour == kRgbAlpha
                    ? d == 8 || d == 16
                    : false;
    if (!fits || body[10] != 0 || body[11] != 0 || body[12] > 1)
        throw BadImage(fmt::format("PNG with an invalid colour type: {}, {} bits", header.colour,
                                   header.depth));
    header.interlaced = body[12] == 1;
    // A worker holds the whole image at once, and four 16-bit samples are eight bytes per pixel.
    std::uint64_t bytes = std::uint64_t{header.row_bytes(header.size.width)} * height;
    if (bytes > kImageBytesMax)
        throw BadImage(fmt::format("{}x{} pixels of {} bits take {} MB, more than the limit of {}",
                                   width, height, header.samples() * header.depth, bytes >> 20,
                                   kImageBytesMax >> 20));
    return header;
}

// One pass of an image: the whole image, or one of the seven passes of Adam7.
struct Pass {
    int x = 0, y = 0, step_x = 1, step_y = 1;
    [[nodiscard]] int width(ImageSize size) const { return (size.width - x + step_x - 1) / step_x; }
    [[nodiscard]] int height(ImageSize size) const {
        return (size.height - y + step_y - 1) / step_y;
    }
};
constexpr Pass kWhole[] = {{0, 0, 1, 1}};
constexpr Pass kAdam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                           {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

}  // namespace

struct PngDecoder::Impl {
    libdeflate_decompressor* inflater = libdeflate_alloc_decompressor();
    Bytes file;
    Header header;
    std::array<std::array<std::uint8_t, 3>, 256> palette{};
    Buffer<std::uint8_t> joined, raw, pixels;
    std::vector<std::uint8_t> nothing;  // zeros, for the row above the first

    ~Impl() { libdeflate_free_decompressor(inflater); }

    struct Chunk {
        Bytes name, body;
    };
    [[nodiscard]] Chunk chunk_at(std::size_t at) const;
    [[nodiscard]] std::span<const Pass> passes() const {
        return header.interlaced ? std::span<const Pass>(kAdam7) : std::span<const Pass>(kWhole);
    }
    [[nodiscard]] Bytes collect();
    void inflate(Bytes packed, std::size_t bytes);
    [[nodiscard]] int unfilter_grey(const std::uint8_t* row, std::uint8_t* out);
    void widen(const std::uint8_t* row, int width, std::uint8_t* out, std::size_t step,
               int channels) const;
    [[nodiscard]] int sample(const std::uint8_t* row, int index) const;
};

PngDecoder::PngDecoder() : impl_(std::make_unique<Impl>()) {}
PngDecoder::~PngDecoder() = default;

PngDecoder::Impl::Chunk PngDecoder::Impl::chunk_at(std::size_t at) const {
    if (file.size() - at < kChunkOverhead) throw BadImage("PNG ends early");
    std::uint32_t length = big_endian(file.data() + at);
    if (length > file.size() - at - kChunkOverhead) throw BadImage("PNG ends early");
    Chunk chunk{file.subspan(at + 4, 4), file.subspan(at + 8, length)};
    std::uint32_t crc = libdeflate_crc32(0, chunk.name.data(), 4 + length);
    if (crc != big_endian(file.data() + at + 8 + length))
        throw BadImage("PNG chunk fails its checksum");
    return chunk;
}

ImageSize PngDecoder::open(Bytes file) {
    Impl& my = *impl_;
    my.file = file;
    if (file.size() < kSignatureBytes) throw BadImage("PNG ends early");
    Impl::Chunk first = my.chunk_at(kSignatureBytes);
    if (std::memcmp(first.name.data(), "IHDR", 4) != 0)
        throw BadImage("PNG does not start with its header");
    my.header = read_header(first.body);
    return my.header.size;
}

// Returns the compressed data as one piece and reads the palette. A single IDAT, the usual case, is
// not copied.
Bytes PngDecoder::Impl::collect() {
    Bytes only;
    std::size_t parts = 0, total = 0;
    bool has_palette = false;
    std::uint8_t* out = nullptr;
    for (std::size_t at = kSignatureBytes;;) {
        Chunk chunk = chunk_at(at);
        const char* name = reinterpret_cast<const char*>(chunk.name.data());
        if (std::memcmp(name, "IEND", 4) == 0) break;
        if (std::memcmp(name, "PLTE", 4) == 0) {
            if (chunk.body.size() % 3 != 0 || chunk.body.size() > sizeof palette)
                throw BadImage("PNG palette has a wrong length");
            palette = {};
            std::memcpy(palette.data(), chunk.body.data(), chunk.body.size());
            has_palette = true;
        }
        if (std::memcmp(name, "IDAT", 4) == 0) {
            if (parts == 0) {
                only = chunk.body;
            } else {
                if (parts == 1) {
                    out = joined.get(file.size());  // the data cannot be larger than the file
                    std::memcpy(out, only.data(), only.size());
                }
                std::memcpy(out + total, chunk.body.data(), chunk.body.size());
            }
            total += chunk.body.size();
            ++parts;
        }
        at += kChunkOverhead + chunk.body.size();
    }
    if (parts == 0) throw BadImage("PNG contains no image data");
    if (header.colour == kPalette && !has_palette) throw BadImage("PNG has no palette");
    return parts == 1 ? only : Bytes(out, total);
}

void PngDecoder::Impl::inflate(Bytes packed, std::size_t bytes) {
    if (bytes / kDeflateRatioMax > packed.size()) throw BadImage("PNG ends early");
    std::uint8_t* out = raw.get(bytes + kEightRowsSpare);
    std::size_t got = 0;
    libdeflate_result result =
        libdeflate_zlib_decompress(inflater, packed.data(), packed.size(), out, bytes, &got);
    if (result != LIBDEFLATE_SUCCESS) throw BadImage("PNG data cannot be inflated");
    if (got != bytes) throw BadImage("PNG has fewer rows than its header says");
}

// A sample of less than 8 bits is packed with the high bits first.
int PngDecoder::Impl::sample(const std::uint8_t* row, int index) const {
    if (header.depth == 8) return row[index];
    int bit = index * header.depth;
    return row[bit / 8] >> (8 - header.depth - bit % 8) & ((1 << header.depth) - 1);
}

// Converts a row to 8 bits and `channels`, with `step` bytes from pixel to pixel.
void PngDecoder::Impl::widen(const std::uint8_t* row, int width, std::uint8_t* out,
                             std::size_t step, int channels) const {
    bool dense = step == static_cast<std::size_t>(channels) && header.depth == 8;
    if (dense &&
        ((header.colour == kGrey && channels == 1) || (header.colour == kRgb && channels == 3))) {
        std::memcpy(out, row, static_cast<std::size_t>(width) * channels);
        return;
    }
    int samples = header.samples(), wide = header.depth == 16 ? 2 : 1;
    int scale = header.depth < 8 ? 255 / ((1 << header.depth) - 1) : 1;
    for (int x = 0; x < width; ++x, out += step) {
        int colour[3];
        if (header.colour == kPalette) {
            const auto& entry = palette[static_cast<std::size_t>(sample(row, x))];
            for (int c = 0; c < 3; ++c) colour[c] = entry[c];
        } else if (header.depth < 8) {
            colour[0] = colour[1] = colour[2] = sample(row, x) * scale;
        } else {
            const std::uint8_t* at = row + static_cast<std::size_t>(x) * samples * wide;
            for (int c = 0; c < 3; ++c) colour[c] = at[samples >= 3 ? c * wide : 0];
        }
        if (channels == 3)
            for (int c = 0; c < 3; ++c) out[c] = static_cast<std::uint8_t>(colour[c]);
        else
            out[0] = samples >= 3 || header.colour == kPalette
                         ? luma(colour[0], colour[1], colour[2])
                         : static_cast<std::uint8_t>(colour[0]);
    }
}

// Unfilters grey rows eight at a time, as many as possible. Returns how many rows are done.
int PngDecoder::Impl::unfilter_grey(const std::uint8_t* row, std::uint8_t* out) {
    std::size_t width = static_cast<std::size_t>(header.size.width);
    bool fits = header.colour == kGrey && header.depth == 8 && !header.interlaced &&
                header.size.width <= kEightRowsWidthMax;
    if (!fits || !png_can_unfilter_eight()) return 0;
    nothing.assign(width, 0);
    int done = 0;
    for (; done + 8 <= header.size.height; done += 8) {
        std::size_t y = static_cast<std::size_t>(done);
        EightRows rows{
            row + y * (width + 1), width + 1, done > 0 ? out + (y - 1) * width : nothing.data(),
            out + y * width,       width,     header.size.width};
        if (!png_unfilter_eight(rows)) break;  // invalid filter: the caller reports it
    }
    return done;
}

ImageView PngDecoder::decode(int channels) {
    Impl& my = *impl_;
    const Header& header = my.header;
    Bytes packed = my.collect();
    std::size_t bytes = 0;
    for (const Pass& pass : my.passes()) {
        int width = pass.width(header.size), height = pass.height(header.size);
        if (width > 0 && height > 0) bytes += (header.row_bytes(width) + 1) * height;
    }
    my.inflate(packed, bytes);
    std::size_t stride = static_cast<std::size_t>(header.size.width) * channels;
    std::uint8_t* pixels = my.pixels.get(stride * header.size.height);
    std::uint8_t* row = my.raw.get(bytes + kEightRowsSpare);
    int done = channels == 1 ? my.unfilter_grey(row, pixels) : 0;
    for (const Pass& pass : my.passes()) {
        int width = pass.width(header.size), height = pass.height(header.size);
        if (width <= 0 || height <= 0) continue;
        std::size_t row_bytes = header.row_bytes(width);
        const std::uint8_t* above = done > 0 ? pixels + stride * (done - 1) : nullptr;
        row += (row_bytes + 1) * static_cast<std::size_t>(done);
        for (int y = done; y < height; ++y, row += row_bytes + 1) {
            if (!png_unfilter(row[0], row + 1, above, row_bytes, header.pixel_bytes()))
                throw BadImage(fmt::format("PNG row with an invalid filter: {}", row[0]));
            above = row + 1;
            my.widen(row + 1, width,
                     pixels + stride * (pass.y + static_cast<std::size_t>(y) * pass.step_y) +
                         static_cast<std::size_t>(pass.x) * channels,
                     static_cast<std::size_t>(pass.step_x) * channels, channels);
        }
    }
    return {pixels, header.size, channels, stride};
}

}  // namespace saturate
