// SPDX-License-Identifier: Apache-2.0
// Reads the file of one sample whole, into memory that is kept from sample to sample.
#pragma once

#include <string>

#include "pipeline/image.h"
#include "pipeline/source.h"

namespace saturate {

// Adds the time and bytes to `cost`. Throws BadSample: gone, unreadable, no file, over 1 GiB.
[[nodiscard]] Bytes read_sample_file(const std::string& path, Buffer<std::uint8_t>& memory,
                                     SampleCost& cost);

}  // namespace saturate
