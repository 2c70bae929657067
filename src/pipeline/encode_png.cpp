// SPDX-License-Identifier: Apache-2.0
#include <libdeflate.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "pipeline/image_write.h"

namespace saturate {

namespace {

void put_number(std::string& out, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFF);
}

void put_chunk(std::string& out, const char* name, std::string_view body) {
    put_number(out, static_cast<std::uint32_t>(body.size()));
    std::size_t start = out.size();
    out += name;
    out += body;
    put_number(out, libdeflate_crc32(0, out.data() + start, out.size() - start));
}

std::uint8_t predicted(int filter, int left, int up, int corner) {
    if (filter == 1) return static_cast<std::uint8_t>(left);
    if (filter == 2) return static_cast<std::uint8_t>(up);
    if (filter == 3) return static_cast<std::uint8_t>((left + up) / 2);
    int to_left = std::abs(up - corner), to_up = std::abs(left - corner);
    int to_corner = std::abs(up + left - 2 * corner);
    if (to_left <= to_up && to_left <= to_corner) return static_cast<std::uint8_t>(left);
    return static_cast<std::uint8_t>(to_up <= to_corner ? up : corner);
}

// Appends the row with the filter whose sum of absolute differences is smallest, the usual rule.
void put_row(const ImageView& image, int y, std::vector<std::uint8_t>& out) {
    std::size_t n = static_cast<std::size_t>(image.channels), bytes = n * image.size.width;
    const std::uint8_t* row = image.row(y);
    const std::uint8_t* above = y > 0 ? image.row(y - 1) : nullptr;
    std::vector<std::uint8_t> best, line(bytes + 1);
    long best_sum = -1;
    for (int filter = 0; filter < 5; ++filter) {
        line[0] = static_cast<std::uint8_t>(filter);
        long sum = 0;
        for (std::size_t i = 0; i < bytes; ++i) {
            int left = i >= n ? row[i - n] : 0, up = above ? above[i] : 0;
            int corner = i >= n && above ? above[i - n] : 0;
            int guess = filter == 0 ? 0 : predicted(filter, left, up, corner);
            line[i + 1] = static_cast<std::uint8_t>(row[i] - guess);
            sum += std::abs(static_cast<std::int8_t>(line[i + 1]));
        }
        if (best_sum < 0 || sum < best_sum) {
            best_sum = sum;
            best = line;
        }
    }
    out.insert(out.end(), best.begin(), best.end());
}

}  // namespace

std::string encode_png(const ImageView& image, const PngWriteSettings& settings) {
    SATURATE_CHECK(image.channels == 1 || image.channels == 3, "images are grey or RGB");
    check_image_size(image.size.width, image.size.height);
    std::vector<std::uint8_t> raw;
    for (int y = 0; y < image.size.height; ++y) put_row(image, y, raw);
    std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
        libdeflate_alloc_compressor(settings.level), libdeflate_free_compressor);
    std::string packed(libdeflate_zlib_compress_bound(compressor.get(), raw.size()), '\0');
    packed.resize(libdeflate_zlib_compress(compressor.get(), raw.data(), raw.size(), packed.data(),
                                           packed.size()));
    std::string out = "\x89PNG\r\n\x1A\n";
    std::string header;
    put_number(header, static_cast<std::uint32_t>(image.size.width));
    put_number(header, static_cast<std::uint32_t>(image.size.height));
    header += '\x08';
    header += image.channels == 1 ? '\0' : '\x02';
    header += std::string(3, '\0');
    put_chunk(out, "IHDR", header);
    put_chunk(out, "IDAT", packed);
    put_chunk(out, "IEND", "");
    return out;
}

void write_png(const std::filesystem::path& path, const ImageView& image,
               const PngWriteSettings& settings) {
    write_file_whole(path, encode_png(image, settings));
}

}  // namespace saturate
