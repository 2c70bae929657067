// SPDX-License-Identifier: Apache-2.0
#include "workloads/restoration.h"

#include <torch/nn/modules/container/modulelist.h>

#include <cmath>

#include "engine/recompute.h"
#include "workloads/layers.h"
#include "workloads/perceptual.h"

namespace saturate {

namespace {

// A picture's error changes the features of a deep layer by a few per cent of their size, about as
// much as it changes the pixels. A weight of 0.1 lets the pixels dominate.
constexpr double kPerceptualWeight = 0.1;

class Restoration final : public JobWithData {
  public:
    Restoration(const RestorationOptions& options, JobData data)
        : JobWithData(std::move(data)), net_(std::make_shared<RestorationNet>(options.shape)) {
        if (options.use_perceptual) perceptual_ = std::make_unique<PerceptualLoss>();
    }
    torch::nn::Module& model() override { return *net_; }
    torch::Tensor loss(const TensorBatch& batch) override {
        torch::Tensor restored = net_->forward(batch[0]);
        torch::Tensor pixels = torch::l1_loss(restored, batch[1]);
        if (!perceptual_) return pixels;
        return pixels + kPerceptualWeight * perceptual_->loss(restored, batch[1]);
    }
    [[nodiscard]] Metric metric() const override {
        return {.name = "psnr_gain", .unit = "dB", .higher_is_better = true};
    }
    // Per picture, as is usual: the mean of the decibels, not the decibels of the mean.
    void evaluate(const TensorBatch& batch, torch::Tensor& sums) override {
        torch::Tensor restored = net_->forward(batch[0]).to(torch::kFloat).clamp(0, 1);
        sums[0] += decibels(restored, batch[1]).sum();
        sums[1] += decibels(batch[0], batch[1]).sum();
        sums[2] += static_cast<double>(batch[0].size(0));
    }
    [[nodiscard]] int metric_sums() const override { return 3; }
    [[nodiscard]] double metric_value(const torch::Tensor& sums) const override {
        const double* values = sums.const_data_ptr<double>();
        return (values[0] - values[1]) / values[2];
    }

  private:
    static torch::Tensor decibels(const torch::Tensor& picture, const torch::Tensor& target) {
        torch::Tensor error = (picture - target).square().mean({1, 2, 3}).to(torch::kDouble);
        return error.clamp_min(1e-10).log10() * -10;
    }

    std::shared_ptr<RestorationNet> net_;
    std::unique_ptr<PerceptualLoss> perceptual_;
};

}  // namespace

struct RestorationNet::Block : torch::nn::Module {
    explicit Block(std::int64_t channels)
        : conv1(register_module("conv1", convolution_3x3(channels, channels))),
          conv2(register_module("conv2", convolution_3x3(channels, channels))) {}
    torch::nn::Conv2d conv1, conv2;
};

RestorationNet::RestorationNet(const RestorationShape& shape) : recomputes_(shape.recomputes) {
    head_ = register_module("head", convolution_3x3(3, shape.base_channels));
    auto body = register_module("body", torch::nn::ModuleList());
    for (std::int64_t i = 0; i < shape.num_blocks; ++i) {
        body_.push_back(std::make_shared<Block>(shape.base_channels));
        body->push_back(body_.back());
    }
    tail_ = register_module("tail", convolution_3x3(shape.base_channels, 3));
    torch::NoGradGuard no_grad;
    tail_->weight.zero_();  // starts as the identity, so training can only improve
    tail_->bias.zero_();
}

torch::Tensor RestorationNet::forward(const torch::Tensor& picture) {
    torch::Tensor x = head_(picture);
    for (const auto& block : body_) {
        auto run = [block](const torch::Tensor& in) {
            return in + block->conv2(torch::relu(block->conv1(in)));
        };
        x = recomputes_ ? recomputed(run, x, RandomNumbers::none) : run(x);
    }
    return picture + tail_(x);
}

std::unique_ptr<Job> restoration_job(const RestorationOptions& options, JobData data) {
    return std::make_unique<Restoration>(options, std::move(data));
}

std::unique_ptr<Job> make_restoration(const Settings& settings) {
    OpenedData data = open_job_data(
        settings, {.kind = "pairs of RGB images: input/ and target/, below train/ and val/",
                   .fields = {{.name = "input", .shape = {3, -1, -1}},
                              {.name = "target", .shape = {3, -1, -1}}}});
    RestorationOptions options{
        .shape = {.base_channels = whole_or(settings, Setting::base_channels, 32),
                  .num_blocks = whole_or(settings, Setting::num_blocks, 4),
                  .recomputes = settings.flag(Setting::gradient_checkpointing).value_or(false)},
        .use_perceptual = settings.flag(Setting::use_perceptual).value_or(false)};
    return restoration_job(options, {data.training, data.validation});
}

}  // namespace saturate
