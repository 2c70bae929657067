// SPDX-License-Identifier: Apache-2.0
// The JSON header of a safetensors file: where each tensor is. Uses no tensor types, so that a
// fuzzer can give it any bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

// The supported types, by the format's names.
struct StoredType {
    const char* name;
    unsigned bytes;  // of one number
};
inline constexpr StoredType kStoredTypes[] = {
    {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"I64", 8},
    {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U8", 1},  {"BOOL", 1},
};

struct StoredTensor {
    std::string name;
    std::string type;  // one of kStoredTypes
    std::vector<std::int64_t> shape = {};
    std::uint64_t begin = 0, end = 0;  // offsets into the data after the header
};

// Throws UserError naming `path` unless the tensors fill `data_bytes` without gaps or overlaps.
// Rejects offsets outside, sizes that overflow or disagree with the shape, and duplicate names.
[[nodiscard]] std::vector<StoredTensor> read_safetensors_header(std::string_view text,
                                                                std::uint64_t data_bytes,
                                                                const std::string& path);

// Throws the UserError for a broken file; also for code that reads the data after the header.
[[noreturn]] void refuse_safetensors(const std::string& path, const std::string& found);

}  // namespace saturate
