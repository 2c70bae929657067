// SPDX-License-Identifier: Apache-2.0
// The checksum of TensorBoard's files and of our checkpoints: CRC-32C (Castagnoli).
#pragma once

#include <cstddef>
#include <cstdint>

namespace saturate {

// Checksum of `bytes` that follow the data with checksum `before`; 0 starts a new one.
[[nodiscard]] std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0);

}  // namespace saturate
