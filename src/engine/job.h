// SPDX-License-Identifier: Apache-2.0
// What the trainer asks of a training job: a model, a loss, data and a metric. The five reference
// jobs in workloads/ implement it, and so does a user's own class. Called from the training thread.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "pipeline/source.h"

namespace saturate {

// The fields of a batch as tensors on the device, in the order of the source's fields().
using TensorBatch = std::vector<torch::Tensor>;

// What evaluation says: the number that must improve, and by which direction.
struct Metric {
    std::string name;  // "accuracy"
    std::string unit;  // "%", "dB"; may be empty
    bool higher_is_better = true;
};

class Job {
  public:
    virtual ~Job() = default;
    [[nodiscard]] virtual torch::nn::Module& model() = 0;
    // Forward and loss of one batch: a scalar. No host synchronisation inside.
    [[nodiscard]] virtual torch::Tensor loss(const TensorBatch& batch) = 0;

    [[nodiscard]] virtual std::shared_ptr<const SampleSource> training_data() = 0;
    // Null when the data has no part kept for it.
    [[nodiscard]] virtual std::shared_ptr<const SampleSource> validation_data() = 0;

    [[nodiscard]] virtual Metric metric() const = 0;
    // Adds one evaluation batch into `sums` (float64 on the device); sums of several ranks are
    // added up. Called without gradients, the model in evaluation mode.
    virtual void evaluate(const TensorBatch& batch, torch::Tensor& sums) = 0;
    [[nodiscard]] virtual int metric_sums() const = 0;  // elements of `sums`
    [[nodiscard]] virtual double metric_value(const torch::Tensor& sums_on_host) const = 0;
};

}  // namespace saturate
