// SPDX-License-Identifier: Apache-2.0
// Finds two points in a picture: the hole and the piece. A light high-resolution network (like
// HRNet, with depthwise convolutions, 3.5 M parameters) gives a heat map per point at a quarter of
// the size and, for each cell, the offset to the point. Metric: share of pictures with both points
// within 5 pixels.
#pragma once

#include <torch/nn/modules/conv.h>

#include <utility>

#include "workloads/job_data.h"

namespace saturate {

struct LocatorOutput {
    torch::Tensor maps;     // [n, points, h / 4, w / 4]
    torch::Tensor offsets;  // [n, 2 * points, h / 4, w / 4], in cells
};

class LocatorNet : public torch::nn::Module {
  public:
    // `recomputes`: gradient_checkpointing
    explicit LocatorNet(std::int64_t base_channels = 40, bool recomputes = false);
    ~LocatorNet() override;
    [[nodiscard]] LocatorOutput forward(const torch::Tensor& picture);  // [n, 3, h, w]

  private:
    struct Layers;
    std::unique_ptr<Layers> layers_;
};

// `points` has x, y of each point in pixels: [n, 4].
[[nodiscard]] torch::Tensor locator_loss(const LocatorOutput& output, const torch::Tensor& points);
// Returns the points found, in pixels: [n, 4].
[[nodiscard]] torch::Tensor locate(const LocatorOutput& output);

// Fields: image float32 [3, h, w], points float32 [4].
[[nodiscard]] std::unique_ptr<Job> locator_job(std::int64_t base_channels, JobData data,
                                               bool recomputes = false);

}  // namespace saturate
