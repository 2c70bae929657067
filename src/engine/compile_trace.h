// SPDX-License-Identifier: Apache-2.0
// Traces a job's loss into a graph of operators: a function of parameters, buffers and batch that
// Python can compile without knowing the job. Used by compiled_step.cpp.
#pragma once

#include <string>
#include <vector>

#include "engine/job.h"

namespace saturate {

struct TracedLoss {
    std::string problem;         // why there is no trace, or empty
    std::string module;          // a TorchScript file: forward(parameters..., buffers..., batch...)
    std::string inputs;          // JSON: shape, strides and type of each input
    std::size_t parameters = 0;  // how many of the inputs are parameters
};

// Leaves parameters and buffers as they were. Throws what the job's loss throws.
[[nodiscard]] TracedLoss trace_loss(Job& job, const TensorBatch& batch);

[[nodiscard]] std::string first_line(const std::string& text);

}  // namespace saturate
