// SPDX-License-Identifier: Apache-2.0
// Separate from cpu_backend.cpp because libsaturate_cuda.so is built with this file too.
#include "base/error.h"
#include "engine/device_backend.h"

namespace saturate {

namespace {

torch::ScalarType type_of(Element element) {
    switch (element) {
        case Element::uint8:
            return torch::kUInt8;
        case Element::int64:
            return torch::kLong;
        case Element::float32:
            return torch::kFloat;
        case Element::bfloat16:
            return torch::kBFloat16;
    }
    throw Bug(__FILE__, __LINE__, "every element has a type");
}

}  // namespace

TensorBatch wrap_batch(const Batch& batch) {
    TensorBatch out;
    out.reserve(batch.fields.size());
    for (const FieldView& view : batch.fields) {
        const FieldSpec& spec = *view.spec;
        c10::SmallVector<std::int64_t, 5> sizes{batch.size};
        sizes.append(spec.shape.begin(), spec.shape.end());
        auto options = torch::TensorOptions().dtype(type_of(spec.element));
        auto keep = [slab = batch.slab](void*) mutable { slab.reset(); };
        if (spec.channels_last && sizes.size() == 4) {
            std::int64_t channels = sizes[1], height = sizes[2], width = sizes[3];
            out.push_back(torch::from_blob(
                view.data, sizes, {channels * height * width, 1, width * channels, channels}, keep,
                options));
        } else {
            out.push_back(torch::from_blob(view.data, sizes, keep, options));
        }
    }
    return out;
}

}  // namespace saturate
