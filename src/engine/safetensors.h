// SPDX-License-Identifier: Apache-2.0
// The file format of our weights, readable by Python's `safetensors`: a JSON header with names,
// types, shapes and offsets, then the numbers. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>

#include "engine/optimizer.h"

namespace saturate {

// Length and checksum of a written file, to detect a torn file later.
struct FileSeal {
    std::uint64_t bytes = 0;
    std::uint32_t checksum = 0;  // CRC-32C of the whole file
    bool operator==(const FileSeal&) const = default;
};

// Writes CPU tensors and syncs the file to disk. Throws MachineError, e.g. if the disk is full.
FileSeal write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors);

// Throws UserError for anything that is not a valid file: offsets outside it, sizes that overflow
// or disagree with the shape, gaps, duplicate names. Allocates no more than the length of the file.
[[nodiscard]] NamedTensors read_safetensors(const std::filesystem::path& path);

// Computes the seal of a file on disk. Throws UserError if it cannot be read.
[[nodiscard]] FileSeal seal_of(const std::filesystem::path& path);

}  // namespace saturate
