// SPDX-License-Identifier: Apache-2.0
#include "workloads/locator.h"

namespace saturate {

namespace {

using torch::Tensor;

constexpr double kStride = 4;    // pixels per cell of a heat map
constexpr double kSigma = 1.5;   // of the Gaussian in the target heat map, in cells
constexpr double kWithin = 5.0;  // pixels

class Locator final : public JobWithData {
  public:
    Locator(std::int64_t base_channels, JobData data, bool recomputes)
        : JobWithData(std::move(data)),
          net_(std::make_shared<LocatorNet>(base_channels, recomputes)) {}
    torch::nn::Module& model() override { return *net_; }
    Tensor loss(const TensorBatch& batch) override {
        return locator_loss(net_->forward(batch[0]), batch[1]);
    }
    [[nodiscard]] Metric metric() const override {
        return {.name = "hits_within_5px", .unit = "%", .higher_is_better = true};
    }
    void evaluate(const TensorBatch& batch, Tensor& sums) override {
        Tensor away =
            (locate(net_->forward(batch[0])) - batch[1]).view({-1, batch[1].size(1) / 2, 2});
        Tensor hit = (away.square().sum(2) <= kWithin * kWithin).all(1);
        sums[0] += hit.sum();
        sums[1] += static_cast<double>(batch[0].size(0));
    }
    [[nodiscard]] int metric_sums() const override { return 2; }
    [[nodiscard]] double metric_value(const Tensor& sums) const override {
        const double* values = sums.const_data_ptr<double>();
        return 100 * values[0] / values[1];
    }

  private:
    std::shared_ptr<LocatorNet> net_;
};

}  // namespace

Tensor locator_loss(const LocatorOutput& output, const Tensor& points) {
    // In float32 for any precision of the network: a softmax over 3,200 cells needs the digits.
    Tensor maps = output.maps.to(torch::kFloat), offsets = output.offsets.to(torch::kFloat);
    std::int64_t count = maps.size(1), height = maps.size(2), width = maps.size(3);
    Tensor place = points.view({-1, count, 2}) / kStride - 0.5;  // in cells; integers are centres
    Tensor x = place.select(2, 0), y = place.select(2, 1);
    Tensor dx = torch::arange(width, x.options()).view({1, 1, 1, -1}) - x.view({-1, count, 1, 1});
    Tensor dy = torch::arange(height, y.options()).view({1, 1, -1, 1}) - y.view({-1, count, 1, 1});
    // The Kullback-Leibler divergence, i.e. cross entropy minus the entropy of the Gaussian, so the
    // best value is 0.
    Tensor target = (-(dx * dx + dy * dy) / (2 * kSigma * kSigma)).flatten(2).log_softmax(2);
    Tensor map_loss = (target.exp() * (target - maps.flatten(2).log_softmax(2))).sum(2).mean();

    Tensor cell_x = x.round().clamp(0, static_cast<double>(width - 1));
    Tensor cell_y = y.round().clamp(0, static_cast<double>(height - 1));
    Tensor index = (cell_y * width + cell_x).to(torch::kLong).view({-1, count, 1, 1});
    Tensor found = offsets.reshape({-1, count, 2, height * width})
                       .gather(3, index.expand({-1, -1, 2, 1}))
                       .squeeze(3);
    Tensor wanted = torch::stack({x - cell_x, y - cell_y}, 2);
    return map_loss + torch::l1_loss(found, wanted);
}

Tensor locate(const LocatorOutput& output) {
    std::int64_t count = output.maps.size(1);
    std::int64_t height = output.maps.size(2), width = output.maps.size(3);
    Tensor index = output.maps.flatten(2).argmax(2);
    Tensor offset = output.offsets.to(torch::kFloat)
                        .reshape({-1, count, 2, height * width})
                        .gather(3, index.view({-1, count, 1, 1}).expand({-1, -1, 2, 1}))
                        .squeeze(3);
    Tensor cell = torch::stack({index.remainder(width), index.div(width, "floor")}, 2);
    return ((cell + offset + 0.5) * kStride).flatten(1);
}

std::unique_ptr<Job> locator_job(std::int64_t base_channels, JobData data, bool recomputes) {
    return std::make_unique<Locator>(base_channels, std::move(data), recomputes);
}

std::unique_ptr<Job> make_locator(const Settings& settings) {
    OpenedData data = open_job_data(
        settings,
        {.kind = "images and labels.csv (file, then x and y of two points), below train/ and val/",
         .fields = {{.name = "image", .shape = {3, -1, -1}}, {.name = "points", .shape = {4}}}});
    return locator_job(whole_or(settings, Setting::base_channels, 40),
                       {data.training, data.validation},
                       settings.flag(Setting::gradient_checkpointing).value_or(false));
}

}  // namespace saturate
