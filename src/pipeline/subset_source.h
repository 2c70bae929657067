// SPDX-License-Identifier: Apache-2.0
// Some samples of another source, by their numbers in it, in the order given. What is random about
// a sample is that of its own number.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/source.h"

namespace saturate {

// Throws UserError for a number that the source does not have.
[[nodiscard]] std::shared_ptr<const SampleSource> subset_of_source(
    std::shared_ptr<const SampleSource> whole, std::vector<std::int64_t> indices);

}  // namespace saturate
