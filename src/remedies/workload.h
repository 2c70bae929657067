// SPDX-License-Identifier: Apache-2.0
// What a known kind of model costs per sample, estimated from the settings that shape it. Only for
// models whose shape the file tells; an estimate says how full a GPU gets, never how fast it is.
#pragma once

#include <optional>

#include "config/model_shape.h"
#include "config/settings.h"
#include "probe/gpu_table.h"

namespace saturate {

// By the job's name in our files, by the keys that only one kind has in others'; nothing when
// unclear.
[[nodiscard]] std::optional<ModelShape> shape_of(const Settings& settings);

[[nodiscard]] Workload estimate(const ModelShape& shape);

struct BatchEstimate {
    double fills = 0;         // the batch from which the step's fixed cost is under a tenth of it
    double fits = 0;          // the largest batch in 80 % of the memory
    double sample_bytes = 0;  // memory per sample
};
[[nodiscard]] BatchEstimate estimate_batch(const Workload& workload, const GpuFacts& gpu,
                                           Precision precision, bool compiled);

}  // namespace saturate
