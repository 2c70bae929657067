// SPDX-License-Identifier: Apache-2.0
// Estimates the cost per sample of a known kind of model from the settings of its shape. Only for
// models whose shape is in the file. The estimate says how full a GPU gets, never how fast it is.
#pragma once

#include <optional>

#include "config/model_shape.h"
#include "config/settings.h"
#include "probe/gpu_table.h"

namespace saturate {

// In our files, goes by the job's name. In other files, goes by keys that only one kind of model
// has. Returns nothing if unclear.
[[nodiscard]] std::optional<ModelShape> shape_of(const Settings& settings);

[[nodiscard]] Workload estimate(const ModelShape& shape);

struct BatchEstimate {
    double fills = 0;         // from this batch on, the step's fixed cost is under a tenth of it
    double fits = 0;          // the largest batch that fits into 80 % of the memory
    double sample_bytes = 0;  // memory per sample
};
[[nodiscard]] BatchEstimate estimate_batch(const Workload& workload, const GpuFacts& gpu,
                                           Precision precision, bool compiled);

}  // namespace saturate
