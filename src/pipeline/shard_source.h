// SPDX-License-Identifier: Apache-2.0
// A consecutive part of a source, for evaluation on one rank. The parts of all ranks are disjoint,
// cover the source, and differ in size by at most one sample.
#pragma once

#include <memory>

#include "pipeline/sample_order.h"
#include "pipeline/source.h"

namespace saturate {

// The part is empty if there are more ranks than samples.
[[nodiscard]] std::shared_ptr<const SampleSource> part_of_source(
    std::shared_ptr<const SampleSource> whole, const Shard& shard);

}  // namespace saturate
