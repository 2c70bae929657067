// SPDX-License-Identifier: Apache-2.0
// The small network that the checks of `saturate selftest` train, with its steps on a device and in
// plain double precision.
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <string>
#include <vector>

#include "base/selftest.h"
#include "engine/step.h"

namespace saturate {

inline constexpr std::int64_t kSelftestBatch = 16;

struct SelftestNet : torch::nn::Module {
    SelftestNet();
    torch::Tensor forward(const torch::Tensor& x);
    torch::nn::Conv2d first, second;
    torch::nn::Linear last;
    double dropout = 0;
    bool recomputes = false;  // recomputes the second layer in the backward pass
};

class SelftestJob final : public Job {
  public:
    // Seeds the generator first, so the weights are the same each time.
    SelftestJob();
    torch::nn::Module& model() override { return net; }
    torch::Tensor loss(const TensorBatch& batch) override;
    std::shared_ptr<const SampleSource> training_data() override;  // 64 pictures
    std::shared_ptr<const SampleSource> validation_data() override;
    [[nodiscard]] Metric metric() const override;  // the loss
    void evaluate(const TensorBatch& batch, torch::Tensor& sums) override;
    [[nodiscard]] int metric_sums() const override { return 2; }
    [[nodiscard]] double metric_value(const torch::Tensor& sums) const override;

    SelftestNet net;
    std::function<void(std::int64_t)> at_loss;  // gets the number of losses computed so far

  private:
    std::int64_t losses_ = 0;
};

// Samples [begin, end) of batch `number`, on the host.
[[nodiscard]] TensorBatch selftest_batch(int number, std::int64_t begin, std::int64_t end);

struct SelftestSteps {
    StepSettings settings = {};
    std::int64_t split = 1;
    int count = 8;
    std::vector<std::int64_t> batches = {kSelftestBatch};  // samples of each batch of a step
    int short_step = -1;                                   // this step has half the samples
    double rate = 0.01;
    bool rate_changes = false;
    double dropout = 0;
    bool recomputes = false;
    std::function<void(std::int64_t)> at_loss = nullptr;
};

struct SelftestTrained {
    std::vector<torch::Tensor> weights;  // on the CPU, in double
    std::vector<double> losses;
    std::vector<std::string> notes;
    int out_of_memory = 0;  // steps repeated with half the micro-batch
};

[[nodiscard]] SelftestTrained selftest_train(DeviceBackend& backend, SelftestSteps steps);
// The eight steps that selftest_train() runs by default, with the update written out.
[[nodiscard]] SelftestTrained selftest_train_plainly();

// The largest difference of any weight.
[[nodiscard]] double largest_difference(const SelftestTrained& a, const SelftestTrained& b);
[[nodiscard]] SelftestCheck check_within(double error, double allowed);

// For eight steps of momentum SGD at 0.01: weights around 0.1 to 1 move by a few hundredths,
// computed from sums of up to 2304 products in float (2^-24 each, partly cancelling). This is about
// fifty roundings; TF32 would show as 1e-3.
inline constexpr double kSelftestAllowed = 2e-5;

}  // namespace saturate
