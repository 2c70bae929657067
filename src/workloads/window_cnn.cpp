// SPDX-License-Identifier: Apache-2.0
#include "workloads/window_cnn.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/recompute.h"
#include "workloads/layers.h"

namespace saturate {

namespace {

constexpr std::int64_t kHidden = 64;

class WindowCnnJob final : public ForecastJob {
  public:
    WindowCnnJob(const WindowCnnShape& shape, ForecastData data)
        : ForecastJob(std::move(data)), net_(std::make_shared<WindowCnn>(shape)) {}
    torch::nn::Module& model() override { return *net_; }

  protected:
    torch::Tensor forecast(const torch::Tensor& window) override { return net_->forward(window); }

  private:
    std::shared_ptr<WindowCnn> net_;
};

}  // namespace

WindowCnn::WindowCnn(const WindowCnnShape& shape) : recomputes_(shape.recomputes) {
    std::int64_t channels = shape.base_channels;
    std::int64_t cells = (shape.window_size / 4) * (shape.num_features / 4);
    conv1_ = register_module("conv1", convolution_3x3(1, channels));
    norm1_ = register_module("norm1", torch::nn::BatchNorm2d(channels));
    conv2_ = register_module("conv2", convolution_3x3(channels, 2 * channels));
    norm2_ = register_module("norm2", torch::nn::BatchNorm2d(2 * channels));
    fc1_ = register_module("fc1", torch::nn::Linear(2 * channels * cells, kHidden));
    fc2_ = register_module("fc2", torch::nn::Linear(kHidden, 1));
}

torch::Tensor WindowCnn::forward(const torch::Tensor& window) {
    auto half = [this](torch::nn::Conv2d conv, torch::nn::BatchNorm2d norm,
                       const torch::Tensor& in) {
        auto run = [conv, norm](const torch::Tensor& x) mutable {
            return torch::max_pool2d(torch::relu(norm(conv(x))), 2);
        };
        return recomputes_ ? recomputed(run, in, RandomNumbers::none, norm->buffers()) : run(in);
    };
    torch::Tensor x = half(conv2_, norm2_, half(conv1_, norm1_, window));
    return fc2_(torch::relu(fc1_(x.flatten(1))));
}

std::unique_ptr<Job> window_cnn_job(const WindowCnnShape& shape, ForecastData data) {
    if (shape.window_size < 4 || shape.num_features < 4) {
        throw UserError({.found = fmt::format("windows of {} rows and {} features",
                                              shape.window_size, shape.num_features),
                         .expected = "at least 4 of each: the network halves both twice",
                         .fix = "window_size: 24"});
    }
    return std::make_unique<WindowCnnJob>(shape, std::move(data));
}

std::unique_ptr<Job> make_window_cnn(const Settings& settings) {
    ForecastData data = open_forecast_data(settings, /*as_picture=*/true);
    WindowCnnShape shape{
        .window_size = data.window_size,
        .num_features = data.num_features,
        .base_channels = whole_or(settings, Setting::base_channels, 32),
        .recomputes = settings.flag(Setting::gradient_checkpointing).value_or(false)};
    return window_cnn_job(shape, std::move(data));
}

}  // namespace saturate
