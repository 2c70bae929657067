// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#include "base/cpu_features.h"

namespace saturate {

namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0x82f63b78u : 0u);
        table[i] = value;
    }
    return table;
}

std::uint32_t by_table(const unsigned char* data, std::size_t bytes, std::uint32_t state) {
    static constexpr std::array<std::uint32_t, 256> kTable = make_table();
    for (std::size_t i = 0; i < bytes; ++i) state = kTable[(state ^ data[i]) & 0xff] ^ (state >> 8);
    return state;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(const unsigned char* data,
                                                               std::size_t bytes,
                                                               std::uint32_t state) {
    std::uint64_t wide = state;
    for (; bytes >= 8; bytes -= 8, data += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, data, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    return by_table(data, bytes, static_cast<std::uint32_t>(wide));
}
#endif

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before) {
    const auto* from = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
    if (has_sse42()) return ~by_instruction(from, bytes, ~before);
#endif
    return ~by_table(from, bytes, ~before);
}

}  // namespace saturate
