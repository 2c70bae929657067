// SPDX-License-Identifier: Apache-2.0
// Any bytes as an image file; its corpus starts from real ones.
#include "fuzz_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 0) saturate::fuzz_image({data + 1, size - 1}, data[0]);
    return 0;
}
