// SPDX-License-Identifier: Apache-2.0
// A batch as the loader hands it over: one slab of memory divided into fields, each a dense array
// whose first dimension is the sample. It has no tensor type; the engine wraps the memory without a
// copy. A batch keeps its slab until it and all its copies are destroyed; then the slab goes back
// into the loader's ring. A batch may outlive the loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

enum class Element { uint8, int64, float32, bfloat16 };
[[nodiscard]] std::size_t size_of(Element element);  // in bytes
[[nodiscard]] std::string_view element_name(Element element);

// One field of every sample, e.g. "image" float32 [3, 224, 224] or "label" int64 [].
struct FieldSpec {
    std::string name;
    Element element = Element::float32;
    std::vector<std::int64_t> shape = {};  // of one sample; images are [channels, height, width]
    bool channels_last = false;            // ... stored pixel by pixel when this is set

    [[nodiscard]] std::size_t bytes() const;  // of one sample
    bool operator==(const FieldSpec&) const = default;
};

struct FieldView {
    const FieldSpec* spec = nullptr;
    std::byte* data = nullptr;  // `Batch::size` samples, one after the other
};

struct Batch {
    std::int64_t epoch = 0;
    std::int64_t index = 0;                 // within the epoch
    std::int64_t size = 0;                  // samples; the last of an epoch may be smaller
    std::span<const FieldView> fields;      // lives as long as `slab`
    std::span<const std::int64_t> samples;  // their indices in the source; lives as long as `slab`
    std::shared_ptr<void> slab;             // keeps the memory; the last holder returns it

    [[nodiscard]] const FieldView& field(std::string_view name) const;  // throws Bug
};

}  // namespace saturate
