// SPDX-License-Identifier: Apache-2.0
// Any bytes as a PNG file; and, since checksums would stop nearly all of them, as the header and
// rows of one whose checksums hold.
#include "../pipeline/png_by_letter.h"
#include "fuzz_image.h"

namespace {

std::string wrapped(std::string_view text) {
    using namespace saturate;
    auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    std::string header = big(byte(0) % 70u) + big(byte(1) % 70u);
    header += {static_cast<char>(byte(2) & 31), static_cast<char>(byte(3) & 7), 0, 0,
               static_cast<char>(byte(4) & 1)};
    std::size_t palette = byte(5) / 3 * 3, rest = 6 + palette;
    std::string out = "\x89PNG\r\n\x1A\n" + chunk("IHDR", header);
    if (rest > text.size()) return out;
    if (palette > 0) out += chunk("PLTE", std::string(text.substr(6, palette)));
    std::string raw(text.substr(rest, 65'000));
    return out + chunk("IDAT", stored(raw)) + chunk("IEND", "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 8) return 0;
    std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
    std::string built = data[1] & 1 ? wrapped(text) : std::string(text);
    saturate::fuzz_image({reinterpret_cast<const std::uint8_t*>(built.data()), built.size()},
                         data[0]);
    return 0;
}
