// SPDX-License-Identifier: Apache-2.0
// A training job of one's own: one class, one line that registers it, and `train` works for it as
// for ours. Build: cmake --build BUILD --target own_job. Run: own_job train --config own.yaml
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "arguments.h"
#include "commands.h"
#include "dispatch.h"
#include "pipeline/random.h"
#include "workloads/registry.h"

namespace {

using namespace saturate;
using torch::Tensor;

// Points on two spirals; which of the two? Sample i is always the same, for any number of workers.
class Spirals final : public SampleSource {
  public:
    explicit Spirals(std::int64_t size) : size_(size) {}
    std::int64_t size() const override { return size_; }
    const std::vector<FieldSpec>& fields() const override { return fields_; }
    std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<Scratch>(); }
    std::string name_of(std::int64_t index) const override {
        return "point " + std::to_string(index);
    }
    void write(const SampleDraw& draw, Scratch&, std::span<std::byte* const> places,
               SampleCost&) const override {
        auto index = static_cast<std::uint64_t>(draw.index);
        std::int64_t label = draw.index % 2;
        double along = unit(mix(index)), turn = 6 * along + (label == 1 ? M_PI : 0);
        auto* point = reinterpret_cast<float*>(places[0]);
        point[0] = static_cast<float>(along * std::cos(turn));
        point[1] = static_cast<float>(along * std::sin(turn));
        *reinterpret_cast<std::int64_t*>(places[1]) = label;
    }

  private:
    std::int64_t size_;
    std::vector<FieldSpec> fields_ = {{.name = "point", .shape = {2}},
                                      {.name = "label", .element = Element::int64, .shape = {}}};
};

struct Net : torch::nn::Module {
    explicit Net(std::int64_t width)
        : first(register_module("first", torch::nn::Linear(2, width))),
          second(register_module("second", torch::nn::Linear(width, width))),
          last(register_module("last", torch::nn::Linear(width, 2))) {}
    Tensor forward(const Tensor& x) { return last(torch::tanh(second(torch::tanh(first(x))))); }
    torch::nn::Linear first, second, last;
};

class SpiralJob final : public Job {
  public:
    explicit SpiralJob(std::int64_t width) : net_(std::make_shared<Net>(width)) {}
    torch::nn::Module& model() override { return *net_; }
    Tensor loss(const TensorBatch& batch) override {
        return torch::cross_entropy_loss(net_->forward(batch[0]), batch[1]);
    }
    std::shared_ptr<const SampleSource> training_data() override {
        return std::make_shared<Spirals>(4096);
    }
    std::shared_ptr<const SampleSource> validation_data() override {
        return std::make_shared<Spirals>(512);
    }
    Metric metric() const override { return {.name = "accuracy", .unit = "%"}; }
    void evaluate(const TensorBatch& batch, Tensor& sums) override {
        sums[0] += (net_->forward(batch[0]).argmax(1) == batch[1]).sum();
        sums[1] += static_cast<double>(batch[1].size(0));
    }
    int metric_sums() const override { return 2; }
    double metric_value(const Tensor& sums) const override {
        return 100 * sums[0].item<double>() / sums[1].item<double>();
    }

  private:
    std::shared_ptr<Net> net_;
};

int train(const Arguments& arguments) {
    JobRegistry jobs = reference_jobs();
    jobs.add("spirals", [](const Settings& settings) {
        auto width = static_cast<std::int64_t>(settings.number(Setting::hidden_size).value_or(32));
        return std::make_unique<SpiralJob>(width);
    });
    return train_with(arguments, jobs);
}

}  // namespace

int main(int argc, char** argv) {
    constexpr Handler kHandlers[] = {{"train", train}};
    return dispatch(argc, argv, Program::engine, kHandlers);
}
