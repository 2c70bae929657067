// SPDX-License-Identifier: Apache-2.0
#include "pipeline/batch.h"

#include "base/error.h"

namespace saturate {

std::size_t size_of(Element element) {
    switch (element) {
        case Element::uint8:
            return 1;
        case Element::bfloat16:
            return 2;
        case Element::float32:
            return 4;
        case Element::int64:
            return 8;
    }
    throw Bug(__FILE__, __LINE__, "every element has a size");
}

std::string_view element_name(Element element) {
    switch (element) {
        case Element::uint8:
            return "uint8";
        case Element::bfloat16:
            return "bfloat16";
        case Element::float32:
            return "float32";
        case Element::int64:
            return "int64";
    }
    throw Bug(__FILE__, __LINE__, "every element has a name");
}

std::size_t FieldSpec::bytes() const {
    std::size_t count = 1;
    for (std::int64_t length : shape) count *= static_cast<std::size_t>(length);
    return count * size_of(element);
}

const FieldView& Batch::field(std::string_view name) const {
    for (const FieldView& view : fields) {
        if (view.spec->name == name) return view;
    }
    throw Bug(__FILE__, __LINE__, "a batch has no field " + std::string(name));
}

}  // namespace saturate
