// SPDX-License-Identifier: Apache-2.0
#include "workloads/tiny_mlp.h"

#include <torch/nn/modules/linear.h>

#include <cmath>

#include "pipeline/random.h"

namespace saturate {

namespace {

constexpr std::int64_t kInputs = 32;

// Sample i is always the same: uniform inputs, and a target that needs the hidden layers.
class Numbers final : public SampleSource {
  public:
    Numbers(std::uint64_t seed, std::int64_t size) : seed_(seed), size_(size) {
        fields_ = {{.name = "input", .element = Element::float32, .shape = {kInputs}},
                   {.name = "target", .element = Element::float32, .shape = {1}}};
    }
    [[nodiscard]] std::int64_t size() const override { return size_; }
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override { return fields_; }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override {
        return std::make_unique<Scratch>();
    }
    void write(const SampleDraw& draw, Scratch&, std::span<std::byte* const> places,
               SampleCost&) const override {
        auto* input = reinterpret_cast<float*>(places[0]);
        float sum = 0;
        for (std::int64_t i = 0; i < kInputs; ++i) {
            std::uint64_t bits =
                mix(seed_ + static_cast<std::uint64_t>(draw.index * kInputs + i)) >> 40;
            input[i] = static_cast<float>(bits) / 8388608.0f - 1.0f;
            sum += i % 2 == 0 ? input[i] : -input[i];
        }
        *reinterpret_cast<float*>(places[1]) = std::sin(0.3f * sum);
    }
    [[nodiscard]] std::string name_of(std::int64_t index) const override {
        return "number " + std::to_string(index);
    }

  private:
    std::uint64_t seed_;
    std::int64_t size_;
    std::vector<FieldSpec> fields_;
};

struct Mlp : torch::nn::Module {
    explicit Mlp(std::int64_t width)
        : first(register_module("first", torch::nn::Linear(kInputs, width))),
          second(register_module("second", torch::nn::Linear(width, width))),
          last(register_module("last", torch::nn::Linear(width, 1))) {}
    torch::Tensor forward(const torch::Tensor& x) {
        return last(torch::relu(second(torch::relu(first(x)))));
    }
    torch::nn::Linear first, second, last;
};

class TinyMlp final : public Job {
  public:
    TinyMlp(std::int64_t width, std::uint64_t seed, std::int64_t size)
        : model_(std::make_shared<Mlp>(width)),
          training_(std::make_shared<Numbers>(seed, size)),
          validation_(std::make_shared<Numbers>(mix(seed), std::max<std::int64_t>(1, size / 8))) {}

    torch::nn::Module& model() override { return *model_; }
    torch::Tensor loss(const TensorBatch& batch) override {
        return torch::mse_loss(model_->forward(batch[0]), batch[1]);
    }
    std::shared_ptr<const SampleSource> training_data() override { return training_; }
    std::shared_ptr<const SampleSource> validation_data() override { return validation_; }
    [[nodiscard]] Metric metric() const override {
        return {.name = "rmse", .unit = "", .higher_is_better = false};
    }
    void evaluate(const TensorBatch& batch, torch::Tensor& sums) override {
        torch::Tensor error = model_->forward(batch[0]) - batch[1];
        sums[0] += error.square().sum();
        sums[1] += static_cast<double>(batch[0].size(0));
    }
    [[nodiscard]] int metric_sums() const override { return 2; }
    [[nodiscard]] double metric_value(const torch::Tensor& sums) const override {
        const double* values = sums.const_data_ptr<double>();
        return std::sqrt(values[0] / values[1]);
    }

  private:
    std::shared_ptr<Mlp> model_;
    std::shared_ptr<Numbers> training_, validation_;
};

}  // namespace

std::unique_ptr<Job> tiny_mlp_job(std::int64_t hidden_size) {
    return std::make_unique<TinyMlp>(hidden_size, 0, 4096);
}

std::unique_ptr<Job> make_tiny_mlp(const Settings& settings) {
    auto whole = [&](Setting setting, std::int64_t otherwise) {
        auto number = settings.number(setting);
        return number ? static_cast<std::int64_t>(*number) : otherwise;
    };
    return std::make_unique<TinyMlp>(whole(Setting::hidden_size, 64),
                                     static_cast<std::uint64_t>(whole(Setting::seed, 0)),
                                     whole(Setting::dataset_size, 4096));
}

}  // namespace saturate
