// SPDX-License-Identifier: Apache-2.0
// The job's metric over its validation data: without gradients, in the precision of training.
// Training thread.
#pragma once

#include <functional>

#include "engine/step.h"
#include "telemetry/recorder.h"

namespace saturate {

struct EvaluationSettings {
    std::int64_t batch_size = 32;
    int workers = -1;
    int cores = 0;  // as LoaderSettings has it
    std::uint64_t seed = 0;
    Precision precision = Precision::fp32;
    bool channels_last = false;
    // Of several ranks: each evaluates its part of the data, every sample once, and `share` adds
    // the sums and the count of all.
    Shard shard = {};
    std::function<void(torch::Tensor&, std::int64_t&)> share = nullptr;
    std::shared_ptr<SlabMemory> memory = nullptr;  // of its batches; null: ordinary
    std::uint64_t prefetch_bytes = 0;              // of all of them; 0: no limit
};

struct Evaluation {
    double value = 0;
    std::int64_t samples = 0;
    std::int64_t batch_size = 0;  // smaller than asked for when memory ran out
};

[[nodiscard]] Evaluation evaluate(Job& job, std::shared_ptr<const SampleSource> data,
                                  const EvaluationSettings& settings, DeviceBackend& backend,
                                  Recorder& recorder);

}  // namespace saturate
