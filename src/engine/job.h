// SPDX-License-Identifier: Apache-2.0
// The interface of a training job: a model, a loss, data and a metric. The five reference jobs in
// workloads/ implement it, and so can a user's own class. Called from the training thread.
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

// The number that evaluation returns, and which direction is better.
struct Metric {
    std::string name;  // "accuracy"
    std::string unit;  // "%", "dB"; may be empty
    bool higher_is_better = true;
};

class Job {
  public:
    virtual ~Job() = default;
    [[nodiscard]] virtual torch::nn::Module& model() = 0;
    // Forward pass and loss of one batch, as a scalar. Must not synchronise with the host.
    [[nodiscard]] virtual torch::Tensor loss(const TensorBatch& batch) = 0;

    [[nodiscard]] virtual std::shared_ptr<const SampleSource> training_data() = 0;
    // Null if the data has no validation part.
    [[nodiscard]] virtual std::shared_ptr<const SampleSource> validation_data() = 0;

    [[nodiscard]] virtual Metric metric() const = 0;
    // Adds the results of one batch to `sums` (float64 on the device); the sums of several ranks
    // are added up. Called without gradients and with the model in evaluation mode.
    virtual void evaluate(const TensorBatch& batch, torch::Tensor& sums) = 0;
    [[nodiscard]] virtual int metric_sums() const = 0;  // elements of `sums`
    [[nodiscard]] virtual double metric_value(const torch::Tensor& sums_on_host) const = 0;
};

}  // namespace saturate
