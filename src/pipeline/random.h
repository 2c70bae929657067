// SPDX-License-Identifier: Apache-2.0
// Random numbers as pure functions of their purpose, without a state that threads would share: the
// same (seed, epoch, index) gives the same number everywhere, at any time.
#pragma once

#include <cstdint>

namespace saturate {

// Spreads every bit of `x` over all 64 (the finaliser of SplitMix64).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    return mix(mix(a) ^ b);
}

// Converts random bits to a number in [0, 1), with 53 bits.
[[nodiscard]] constexpr double unit(std::uint64_t bits) {
    return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

// Converts random bits to a number in [0, count). The bias is negligible: 2^-64 * count.
[[nodiscard]] constexpr std::int64_t below(std::uint64_t bits, std::int64_t count) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::int64_t>((Wide{bits} * static_cast<std::uint64_t>(count)) >> 64);
}

}  // namespace saturate
