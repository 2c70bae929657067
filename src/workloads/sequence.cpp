// SPDX-License-Identifier: Apache-2.0
#include "workloads/sequence.h"

namespace saturate {

namespace {

class Sequence final : public ForecastJob {
  public:
    Sequence(const SequenceShape& shape, ForecastData data)
        : ForecastJob(std::move(data)), net_(std::make_shared<SequenceNet>(shape)) {}
    torch::nn::Module& model() override { return *net_; }

  protected:
    torch::Tensor forecast(const torch::Tensor& window) override { return net_->forward(window); }

  private:
    std::shared_ptr<SequenceNet> net_;
};

}  // namespace

SequenceNet::SequenceNet(const SequenceShape& shape) {
    if (shape.is_gru) {
        gru_ = register_module(
            "rnn", torch::nn::GRU(torch::nn::GRUOptions(shape.num_features, shape.hidden_size)
                                      .num_layers(shape.num_layers)
                                      .batch_first(true)));
    } else {
        lstm_ = register_module(
            "rnn", torch::nn::LSTM(torch::nn::LSTMOptions(shape.num_features, shape.hidden_size)
                                       .num_layers(shape.num_layers)
                                       .batch_first(true)));
    }
    out_ = register_module("out", torch::nn::Linear(shape.hidden_size, 1));
}

torch::Tensor SequenceNet::forward(const torch::Tensor& window) {
    torch::Tensor states = gru_ ? std::get<0>(gru_(window)) : std::get<0>(lstm_(window));
    return out_(states.select(1, -1));
}

std::unique_ptr<Job> sequence_job(const SequenceShape& shape, ForecastData data) {
    return std::make_unique<Sequence>(shape, std::move(data));
}

std::unique_ptr<Job> make_sequence(const Settings& settings) {
    ForecastData data = open_forecast_data(settings, /*as_picture=*/false);
    SequenceShape shape{.num_features = data.num_features,
                        .hidden_size = whole_or(settings, Setting::hidden_size, 64),
                        .num_layers = whole_or(settings, Setting::num_layers, 2),
                        .is_gru = settings.word(Setting::cell) == "gru"};
    return sequence_job(shape, std::move(data));
}

}  // namespace saturate
