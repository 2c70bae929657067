// SPDX-License-Identifier: Apache-2.0
// npy files and npz archives of any bytes: refused with a UserError, or every sample can be
// written.
#include <cstdint>

#include "base/error.h"
#include "pipeline/array_source.h"

using namespace saturate;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
    try {
        bool is_archive = size > 1 && data[0] == 'P' && data[1] == 'K';
        std::vector<NpyArray> arrays;
        if (is_archive)
            arrays = parse_npz(bytes, "fuzz.npz", nullptr);
        else
            arrays.push_back(parse_npy(bytes, "fuzz.npy", nullptr));
        ArraySource source(std::move(arrays), "fuzz");
        if (source.size() == 0) return 0;
        std::vector<std::vector<std::byte>> fields;
        std::vector<std::byte*> places;
        for (const FieldSpec& field : source.fields()) {
            // Empty dimensions make huge shapes of no bytes; those have no sample to write.
            if (field.bytes() > 64 * size + 64) return 0;
            fields.emplace_back(field.bytes());
            places.push_back(fields.back().data());
        }
        SampleCost cost;
        std::unique_ptr<Scratch> scratch = source.make_scratch();
        for (std::int64_t index : {std::int64_t{0}, source.size() - 1})
            source.write({.index = index}, *scratch, places, cost);
    } catch (const UserError&) {
    }
    return 0;
}
