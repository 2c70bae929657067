// SPDX-License-Identifier: Apache-2.0
// FNV-1a, 64 bits: short names for files and versions. It defends against nobody; where two texts
// with one name would matter, the text itself is kept beside and compared.
#pragma once

#include <cstdint>
#include <string_view>

namespace saturate {

// Of several texts: the hash of the one before as `hash`.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view text,
                                            std::uint64_t hash = 0xcbf29ce484222325) {
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

}  // namespace saturate
