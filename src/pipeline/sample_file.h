// SPDX-License-Identifier: Apache-2.0
// Reads the file of one sample, whole or a part of it, into memory that is kept from sample to
// sample.
#pragma once

#include <string>

#include "pipeline/image.h"
#include "pipeline/source.h"

namespace saturate {

// Adds the time and bytes to `cost`. Throws BadSample: gone, unreadable, no file, over 1 GiB; and
// BusySample where another try may help. A file that became shorter gives what is left of it.
[[nodiscard]] Bytes read_sample_file(const std::string& path, Buffer<std::uint8_t>& memory,
                                     SampleCost& cost);
[[nodiscard]] Bytes read_sample_part(const std::string& path, std::uint64_t offset,
                                     std::uint64_t size, Buffer<std::uint8_t>& memory,
                                     SampleCost& cost);
// Asks storage for bytes that will be read soon, in one stretch; nothing happens when it cannot.
void read_ahead(const std::string& path, std::uint64_t offset, std::uint64_t size);

}  // namespace saturate
