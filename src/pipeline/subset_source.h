// SPDX-License-Identifier: Apache-2.0
// Some samples of another source, chosen by index, in the given order. A sample's randomness is
// seeded by its index in that source.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/source.h"

namespace saturate {

// Throws UserError for an index that the source does not have.
[[nodiscard]] std::shared_ptr<const SampleSource> subset_of_source(
    std::shared_ptr<const SampleSource> whole, std::vector<std::int64_t> indices);

}  // namespace saturate
