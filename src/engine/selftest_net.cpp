// SPDX-License-Identifier: Apache-2.0
#include "engine/selftest_net.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "engine/recompute.h"
#include "engine/seed.h"

namespace saturate {

namespace {

constexpr std::int64_t kSide = 12, kClasses = 4, kPictures = 64;

torch::nn::Conv2d convolution(std::int64_t inputs, std::int64_t outputs) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(inputs, outputs, 3).padding(1));
}

// Images of waves; the class is the direction of the wave.
class Pictures final : public SampleSource {
  public:
    explicit Pictures(std::int64_t from) : from_(from) {
        fields_ = {{.name = "image", .element = Element::float32, .shape = {1, kSide, kSide}},
                   {.name = "label", .element = Element::int64, .shape = {}}};
    }
    [[nodiscard]] std::int64_t size() const override { return kPictures; }
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override { return fields_; }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override {
        return std::make_unique<Scratch>();
    }
    void write(const SampleDraw& draw, Scratch&, std::span<std::byte* const> places,
               SampleCost&) const override {
        std::int64_t sample = from_ + draw.index, label = sample % kClasses;
        auto* picture = reinterpret_cast<float*>(places[0]);
        auto phase = static_cast<double>(sample);
        for (std::int64_t y = 0; y < kSide; ++y) {
            for (std::int64_t x = 0; x < kSide; ++x)
                picture[y * kSide + x] = static_cast<float>(
                    std::sin(phase + static_cast<double>(label * y + (kClasses - label) * x)));
        }
        *reinterpret_cast<std::int64_t*>(places[1]) = label;
    }
    [[nodiscard]] std::string name_of(std::int64_t index) const override {
        return fmt::format("picture {}", index);
    }

  private:
    std::int64_t from_;
    std::vector<FieldSpec> fields_;
};

}  // namespace

SelftestNet::SelftestNet()
    : first(register_module("first", convolution(1, 8))),
      second(register_module("second", convolution(8, 8))),
      last(register_module("last", torch::nn::Linear(8 * kSide * kSide, kClasses))) {}

torch::Tensor SelftestNet::forward(const torch::Tensor& x) {
    auto block = [this](const torch::Tensor& in) { return torch::relu(second(in)); };
    torch::Tensor seen = torch::relu(first(x));
    seen = (recomputes ? recomputed(block, seen, RandomNumbers::none) : block(seen)).flatten(1);
    if (dropout > 0) seen = torch::dropout(seen, dropout, is_training());
    return last(seen);
}

SelftestJob::SelftestJob() = default;

torch::Tensor SelftestJob::loss(const TensorBatch& batch) {
    if (at_loss) at_loss(losses_++);
    return torch::cross_entropy_loss(net.forward(batch[0]).to(torch::kFloat), batch[1]);
}
std::shared_ptr<const SampleSource> SelftestJob::training_data() {
    return std::make_shared<Pictures>(0);
}
std::shared_ptr<const SampleSource> SelftestJob::validation_data() {
    return std::make_shared<Pictures>(kPictures);
}
Metric SelftestJob::metric() const {
    return {.name = "loss", .unit = "", .higher_is_better = false};
}
void SelftestJob::evaluate(const TensorBatch& batch, torch::Tensor& sums) {
    auto samples = static_cast<double>(batch[0].size(0));
    sums[0] +=
        torch::cross_entropy_loss(net.forward(batch[0]).to(torch::kFloat), batch[1]) * samples;
    sums[1] += samples;
}
double SelftestJob::metric_value(const torch::Tensor& sums) const {
    const double* values = sums.const_data_ptr<double>();
    return values[0] / values[1];
}

TensorBatch selftest_batch(int number, std::int64_t begin, std::int64_t end) {
    auto options = torch::TensorOptions().dtype(torch::kDouble);
    torch::Tensor at = torch::arange(kSelftestBatch * kSide * kSide, options);
    torch::Tensor pictures = torch::sin(at * (12.9898 + number)) * 1.7;
    torch::Tensor labels = torch::arange(kSelftestBatch, torch::kLong) * (number + 3) % kClasses;
    return {pictures.view({kSelftestBatch, 1, kSide, kSide})
                .to(torch::kFloat)
                .narrow(0, begin, end - begin),
            labels.narrow(0, begin, end - begin)};
}

SelftestTrained selftest_train(DeviceBackend& backend, SelftestSteps steps) {
    set_seed(1);
    SelftestJob job;
    job.at_loss = steps.at_loss;
    job.net.dropout = steps.dropout;
    job.net.recomputes = steps.recomputes;
    if (steps.settings.optimizer.kind == OptimizerKind::adamw)
        steps.settings.optimizer.kind = OptimizerKind::sgd;
    TrainingStep step(job, steps.settings, backend);
    if (steps.split > 1) step.set_split(steps.split);
    SelftestTrained out;
    for (int i = 0; i < steps.count; ++i) {
        std::vector<TensorBatch> batches;
        std::int64_t begin = 0;
        for (std::int64_t size : steps.batches) {
            if (i == steps.short_step) size /= 2;
            batches.emplace_back();
            for (const torch::Tensor& tensor : selftest_batch(i % 3, begin, begin + size))
                batches.back().push_back(tensor.to(backend.device()));
            begin += size;
        }
        double rate = steps.rate_changes ? steps.rate * (1 + i % 3) / 2 : steps.rate;
        bool ran = false;
        try {
            step.run(batches, rate);
            ran = true;
        } catch (const c10::OutOfMemoryError&) {
            ++out.out_of_memory;
        }
        if (!ran) {  // as the trainer does
            step.optimizer().clear_gradients(true);
            backend.release_cached();
            step.set_split(step.split() * 2);
            step.run(batches, rate);
        }
        if (std::string line = step.take_note(); !line.empty()) out.notes.push_back(line);
        out.losses.push_back(step.loss().item().toDouble());
    }
    for (const torch::Tensor& weight : job.net.parameters())
        out.weights.push_back(weight.detach().to(torch::kCPU, torch::kDouble));
    return out;
}

SelftestTrained selftest_train_plainly() {
    set_seed(1);
    SelftestJob job;
    job.net.to(torch::kDouble);
    std::vector<torch::Tensor> weights = job.net.parameters(), momenta(weights.size());
    SelftestTrained out;
    for (int i = 0; i < 8; ++i) {
        TensorBatch batch = selftest_batch(i % 3, 0, kSelftestBatch);
        torch::Tensor loss =
            torch::cross_entropy_loss(job.net.forward(batch[0].to(torch::kDouble)), batch[1]);
        std::vector<torch::Tensor> gradients = torch::autograd::grad({loss}, weights);
        torch::NoGradGuard no_gradients;
        for (std::size_t k = 0; k < weights.size(); ++k) {
            momenta[k] = i == 0 ? gradients[k].clone() : momenta[k] * 0.9 + gradients[k];
            weights[k] -= 0.01 * momenta[k];
        }
        out.losses.push_back(loss.item().toDouble());
    }
    for (const torch::Tensor& weight : weights) out.weights.push_back(weight.detach());
    return out;
}

double largest_difference(const SelftestTrained& a, const SelftestTrained& b) {
    double most = 0;
    for (std::size_t i = 0; i < a.weights.size(); ++i)
        most = std::fmax(most, (a.weights[i] - b.weights[i]).abs().max().item().toDouble());
    return most;
}

SelftestCheck check_within(double error, double allowed) {
    return {"", std::isfinite(error) && error <= allowed,
            fmt::format("largest difference {:.2g}, allowed {:.2g}", error, allowed)};
}

}  // namespace saturate
