// SPDX-License-Identifier: Apache-2.0
// A consecutive part of a source as a source of its own: what one rank evaluates. The parts of all
// ranks are disjoint, together the whole, and differ by at most one sample.
#pragma once

#include <memory>

#include "pipeline/sample_order.h"
#include "pipeline/source.h"

namespace saturate {

// May be empty, when there are more ranks than samples.
[[nodiscard]] std::shared_ptr<const SampleSource> part_of_source(
    std::shared_ptr<const SampleSource> whole, const Shard& shard);

}  // namespace saturate
