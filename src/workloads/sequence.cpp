// SPDX-License-Identifier: Apache-2.0
#include "workloads/sequence.h"

#include "engine/recompute.h"

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

SequenceNet::SequenceNet(const SequenceShape& shape) : recomputes_(shape.recomputes) {
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
    torch::Tensor states = recomputes_ ? forward_by_layers(window)
                           : gru_      ? std::get<0>(gru_(window))
                                       : std::get<0>(lstm_(window));
    return out_(states.select(1, -1));
}

// What the recurrent module does in one call, as one call for each layer: between the layers only
// their outputs are kept.
torch::Tensor SequenceNet::forward_by_layers(const torch::Tensor& window) {
    constexpr std::size_t kPerLayer = 4;  // two matrices, two biases
    constexpr double kDropout = 0;
    constexpr bool kHasBiases = true, kBothWays = false, kBatchFirst = true;
    std::vector<torch::Tensor> weights = gru_ ? gru_->all_weights() : lstm_->all_weights();
    std::int64_t hidden = gru_ ? gru_->options.hidden_size() : lstm_->options.hidden_size();
    torch::Tensor start = torch::zeros({1, window.size(0), hidden}, window.options());
    torch::Tensor x = window;
    for (std::size_t i = 0; i < weights.size(); i += kPerLayer) {
        std::vector<torch::Tensor> own(
            weights.begin() + static_cast<std::ptrdiff_t>(i),
            weights.begin() + static_cast<std::ptrdiff_t>(i + kPerLayer));
        auto run = [own, start, is_gru = !gru_.is_empty(),
                    trains = is_training()](const torch::Tensor& in) {
            return is_gru ? std::get<0>(torch::gru(in, start, own, kHasBiases, 1, kDropout, trains,
                                                   kBothWays, kBatchFirst))
                          : std::get<0>(torch::lstm(in, {start, start}, own, kHasBiases, 1,
                                                    kDropout, trains, kBothWays, kBatchFirst));
        };
        x = recomputed(run, x, RandomNumbers::none);
    }
    return x;
}

std::unique_ptr<Job> sequence_job(const SequenceShape& shape, ForecastData data) {
    return std::make_unique<Sequence>(shape, std::move(data));
}

std::unique_ptr<Job> make_sequence(const Settings& settings) {
    ForecastData data = open_forecast_data(settings, /*as_picture=*/false);
    SequenceShape shape{
        .num_features = data.num_features,
        .hidden_size = whole_or(settings, Setting::hidden_size, 64),
        .num_layers = whole_or(settings, Setting::num_layers, 2),
        .is_gru = settings.word(Setting::cell) == "gru",
        .recomputes = settings.flag(Setting::gradient_checkpointing).value_or(false)};
    return sequence_job(shape, std::move(data));
}

}  // namespace saturate
