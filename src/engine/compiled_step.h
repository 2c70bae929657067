// SPDX-License-Identifier: Apache-2.0
// `compile: true` on the CPU: forward, loss and gradients of a job as one compiled graph that runs
// without autograd. Built once through Python and a compiler, kept in a cache, checked against the
// job itself. The trainer falls back to the job with the message where that is not possible.
// Called from the training thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/job.h"

namespace saturate {

struct CompileSettings {
    std::filesystem::path cache;      // folder of compiled graphs; made when it is missing
    std::vector<std::string> python;  // interpreters to try in turn; the first with our torch wins
    bool max_autotune = false;
    bool when_faster_only = true;  // a graph that is slower than the job is not used
};

// The folder and interpreters of this user: $SATURATE_CACHE or ~/.cache/saturate, $SATURATE_PYTHON,
// what tests/support/python_torch made, python3.
[[nodiscard]] CompileSettings compile_settings();

class CompiledStep {
  public:
    ~CompiledStep();

    // The graph is for one shape, layout and type of batch.
    [[nodiscard]] bool accepts(const TensorBatch& batch) const;
    // The loss, and the gradient of each of model().parameters() in their order. Buffers of the
    // model (running means) are updated in place. Reads parameters and buffers where they lie now.
    [[nodiscard]] torch::Tensor run(const TensorBatch& batch,
                                    std::vector<torch::Tensor>& gradients);

  private:
    struct Impl;
    explicit CompiledStep(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
    friend struct StepCompiler;
};

struct CompileOutcome {
    std::unique_ptr<CompiledStep> step;  // null: the job itself is run
    std::string message;                 // one line for the log: what is used, and why
};

// Traces job.loss(batch) under the precision (autocast) that is set now, model in training mode,
// and gets its graph from the cache or builds it, which takes about a minute. Parameters, buffers
// and gradients are left as they were. Throws only what the job's own loss throws.
[[nodiscard]] CompileOutcome compile_step(Job& job, const TensorBatch& batch,
                                          const CompileSettings& settings);

}  // namespace saturate
