// SPDX-License-Identifier: Apache-2.0
// The checksum of TensorBoard's files and of our checkpoints: CRC-32C (Castagnoli).
#pragma once

#include <cstddef>
#include <cstdint>

namespace saturate {

// Of `bytes` behind what gave `before`; 0 begins.
[[nodiscard]] std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0);

}  // namespace saturate
