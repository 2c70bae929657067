// SPDX-License-Identifier: Apache-2.0
// FNV-1a, 64 bits: short names for files and versions. It protects against no attacker. If two
// texts with the same name would matter, the text itself is stored too and compared.
#pragma once

#include <cstdint>
#include <string_view>

namespace saturate {

// To hash several texts, pass the hash of the previous one as `hash`.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view text,
                                            std::uint64_t hash = 0xcbf29ce484222325) {
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

}  // namespace saturate
