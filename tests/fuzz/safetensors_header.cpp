// SPDX-License-Identifier: Apache-2.0
// Any text as the header of a safetensors file of a length that its first byte gives: a UserError,
// or tensors that lie within the file and have the bytes that their shapes need.
#include "engine/safetensors_header.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::uint64_t bytes = data[0] * 4;
    std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
        std::uint64_t filled = 0;
        for (const saturate::StoredTensor& one :
             saturate::read_safetensors_header(text, bytes, "fuzz")) {
            if (one.begin > one.end || one.end > bytes) std::abort();
            std::uint64_t numbers = 1;
            for (std::int64_t length : one.shape) numbers *= static_cast<std::uint64_t>(length);
            auto type =
                std::ranges::find(saturate::kStoredTypes, one.type, &saturate::StoredType::name);
            if (numbers * type->bytes != one.end - one.begin) std::abort();
            filled += one.end - one.begin;
        }
        if (filled != bytes) std::abort();
    } catch (const saturate::UserError&) {
    }
    return 0;
}
