// SPDX-License-Identifier: Apache-2.0
// NumPy's array files: one array in an .npy file, several in an .npz archive. Mapped, not read;
// only compressed members of an archive are unpacked into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace saturate {

// As in NumPy's dtype: kind 'f', 'i', 'u' or 'b' (boolean), and bytes.
struct NumberType {
    char kind = 'f';
    int bytes = 4;
    bool operator==(const NumberType&) const = default;
};

struct NpyArray {
    std::string name;  // of the member, or of the file without its ending
    NumberType type;
    std::vector<std::int64_t> shape;
    std::span<const std::byte> data;     // row-major; not aligned inside an archive
    std::shared_ptr<const void> memory;  // owner of the memory behind `data`
};

// Both throw UserError with the place and what is wrong there. The arrays keep `memory`.
[[nodiscard]] NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& place,
                                 std::shared_ptr<const void> memory);
[[nodiscard]] std::vector<NpyArray> parse_npz(std::span<const std::byte> bytes,
                                              const std::string& place,
                                              const std::shared_ptr<const void>& memory);

// Opens an .npy file, an .npz archive, or a folder of .npy files in the order of their names.
[[nodiscard]] std::vector<NpyArray> open_arrays(const std::filesystem::path& path);

}  // namespace saturate
