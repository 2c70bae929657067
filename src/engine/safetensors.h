// SPDX-License-Identifier: Apache-2.0
// The file format of our weights, which Python's `safetensors` reads: a JSON header with names,
// types, shapes and offsets, then the numbers. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>

#include "engine/optimizer.h"

namespace saturate {

// What was written, so that a torn file can be told later.
struct FileSeal {
    std::uint64_t bytes = 0;
    std::uint32_t checksum = 0;  // CRC-32C of the whole file
    bool operator==(const FileSeal&) const = default;
};

// Tensors on the CPU. The file is synced to the disk. Throws MachineError (a full disk).
FileSeal write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors);

// Throws UserError for whatever is not such a file: offsets outside it, sizes that overflow or
// disagree with the shape, gaps, names twice. Allocates no more than the file is long.
[[nodiscard]] NamedTensors read_safetensors(const std::filesystem::path& path);

// Of a file as it is on the disk. Throws UserError when it cannot be read.
[[nodiscard]] FileSeal seal_of(const std::filesystem::path& path);

}  // namespace saturate
