// SPDX-License-Identifier: Apache-2.0
// Computes the job's metric over its validation data, without gradients and in the precision of
// training. Training thread.
#pragma once

#include <functional>

#include "engine/step.h"
#include "telemetry/recorder.h"

namespace saturate {

struct EvaluationSettings {
    std::int64_t batch_size = 32;
    int workers = -1;
    int cores = 0;  // as in LoaderSettings
    std::uint64_t seed = 0;
    Precision precision = Precision::fp32;
    bool channels_last = false;
    // With several ranks each evaluates its part of the data, every sample once; `share` adds up
    // the sums and the sample count of all ranks.
    Shard shard = {};
    std::function<void(torch::Tensor&, std::int64_t&)> share = nullptr;
    std::shared_ptr<SlabMemory> memory = nullptr;  // for its batches; null: ordinary memory
    std::uint64_t prefetch_bytes = 0;              // for all of its batches; 0: no limit
};

struct Evaluation {
    double value = 0;
    std::int64_t samples = 0;
    std::int64_t batch_size = 0;  // smaller than asked for if memory ran out
};

[[nodiscard]] Evaluation evaluate(Job& job, std::shared_ptr<const SampleSource> data,
                                  const EvaluationSettings& settings, DeviceBackend& backend,
                                  Recorder& recorder);

}  // namespace saturate
