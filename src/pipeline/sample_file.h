// SPDX-License-Identifier: Apache-2.0
// Reads the file of one sample, or a part of it, into memory that is reused from sample to sample.
#pragma once

#include <string>

#include "pipeline/image.h"
#include "pipeline/source.h"

namespace saturate {

// Add the time and bytes to `cost`. Throw BadSample if the file is missing, unreadable, not a
// regular file or over 1 GiB, and BusySample if another try may help. A file that has become
// shorter gives the bytes that are left.
[[nodiscard]] Bytes read_sample_file(const std::string& path, Buffer<std::uint8_t>& memory,
                                     SampleCost& cost);
[[nodiscard]] Bytes read_sample_part(const std::string& path, std::uint64_t offset,
                                     std::uint64_t size, Buffer<std::uint8_t>& memory,
                                     SampleCost& cost);
// Asks the system to prefetch a stretch of bytes that will be read soon; does nothing if it cannot.
void read_ahead(const std::string& path, std::uint64_t offset, std::uint64_t size);

}  // namespace saturate
