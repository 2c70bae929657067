// SPDX-License-Identifier: Apache-2.0
// `compile: true` on the CPU: a job's forward pass, loss and gradients as one compiled graph that
// runs without autograd. Built once through Python and a compiler, cached, and checked against the
// job itself. If that is not possible, the trainer runs the job itself and prints the message.
// Training thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/job.h"

namespace saturate {

struct CompileSettings {
    std::filesystem::path cache;      // folder of compiled graphs; created if missing
    std::vector<std::string> python;  // interpreters in order; the first with our torch is used
    bool max_autotune = false;
    bool when_faster_only = true;  // a graph that is slower than the job is not used
};

// This user's cache folder and interpreters: $SATURATE_CACHE or ~/.cache/saturate;
// $SATURATE_PYTHON, the one that tests/support/python_torch made, python3.
[[nodiscard]] CompileSettings compile_settings();

class CompiledStep {
  public:
    ~CompiledStep();

    // True if the graph fits: it is for one shape, layout and type of batch.
    [[nodiscard]] bool accepts(const TensorBatch& batch) const;
    // Returns the loss; `gradients` has one per model().parameters(), in that order. Updates the
    // model's buffers (running means) in place. Reads the parameters and buffers at
    // their current addresses.
    [[nodiscard]] torch::Tensor run(const TensorBatch& batch,
                                    std::vector<torch::Tensor>& gradients);

  private:
    struct Impl;
    explicit CompiledStep(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
    friend struct StepCompiler;
};

struct CompileOutcome {
    std::unique_ptr<CompiledStep> step;  // null: run the job itself
    std::string message;                 // one line for the log: what runs, and why
};

// Traces job.loss(batch) under the current precision (autocast), with the model in training mode,
// and gets its graph from the cache or builds it, which takes about a minute. Leaves parameters,
// buffers and gradients as they were. Throws only what the job's own loss throws.
[[nodiscard]] CompileOutcome compile_step(Job& job, const TensorBatch& batch,
                                          const CompileSettings& settings);

}  // namespace saturate
