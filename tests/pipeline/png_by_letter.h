// SPDX-License-Identifier: Apache-2.0
// Writes PNG files strictly by the specification: checksums, chunks and an uncompressed zlib
// stream. For tests and fuzzing, independent of the code under test.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace saturate {

inline std::uint32_t crc_of(std::string_view text) {
    std::uint32_t crc = 0xFFFFFFFF;
    for (char c : text) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc;
}

inline std::string big(std::uint32_t value) {
    std::string out;
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
    return out;
}

inline std::string chunk(const std::string& name, const std::string& body) {
    return big(static_cast<std::uint32_t>(body.size())) + name + body + big(crc_of(name + body));
}

inline std::string stored(const std::string& raw) {
    std::uint32_t a = 1, b = 0;
    for (char c : raw) {
        a = (a + static_cast<unsigned char>(c)) % 65521;
        b = (b + a) % 65521;
    }
    std::size_t n = raw.size();
    std::string out = "\x78\x01\x01";
    for (std::size_t part : {n, ~n}) {
        out += static_cast<char>(part);
        out += static_cast<char>(part >> 8);
    }
    return out + raw + big(b << 16 | a);
}

}  // namespace saturate
