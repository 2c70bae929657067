// SPDX-License-Identifier: Apache-2.0
#include "batch_range.h"

#include <fmt/format.h>

#include "base/error.h"

namespace saturate {

BatchLimits batch_range(const Arguments& arguments, BatchLimits otherwise) {
    BatchLimits limits = otherwise;
    limits.min = arguments.whole("--min", 1, kMostBatch).value_or(limits.min);
    limits.max = arguments.whole("--max", 1, kMostBatch).value_or(limits.max);
    limits.step = *arguments.whole("--step", 1, kMostBatch);
    if (limits.min > limits.max) {
        throw UserError(
            {.found = fmt::format("--min is {} and --max is {}", limits.min, limits.max),
             .expected = "--min no larger than --max"});
    }
    return limits;
}

}  // namespace saturate
