// SPDX-License-Identifier: Apache-2.0
// A small job for tests of the engine: fits a line with dropout to samples made in memory, with
// faults on demand.
#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "engine/recompute.h"
#include "engine/trainer.h"
#include "telemetry/recorder.h"

namespace saturate {

struct SmallJobSettings {
    std::int64_t size = 64;
    double dropout = 0;
    std::int64_t nan_sample = -1;      // index of a sample with a NaN target
    std::int64_t width = 8;            // width of the hidden layer
    std::int64_t heavy = 0;            // extra floats per sample for the forward pass
    bool recomputes = false;           // recomputes the hidden layer in the backward pass
    bool recomputes_dropout = false;   // ... and also its dropout
    std::vector<double> metrics = {};  // results of the evaluations, in turn; empty: the real error
    // The value that each evaluation adds to the sums of this rank instead of the real error, with
    // 8 samples per rank.
    std::vector<double> own_sums = {};
    bool validates = true;
    std::int64_t evaluates_most = 8;  // an evaluation of more samples at once runs out of memory
    bool has_idle = false;            // a layer without effect on the loss
    std::function<void(std::int64_t)> at_loss = nullptr;  // gets the number of losses so far
};

class SmallSource final : public SampleSource {
  public:
    SmallSource(std::int64_t size, std::int64_t nan_sample) : size_(size), nan_(nan_sample) {
        fields_ = {{.name = "x", .element = Element::float32, .shape = {4}},
                   {.name = "y", .element = Element::float32, .shape = {1}}};
    }
    [[nodiscard]] std::int64_t size() const override { return size_; }
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override { return fields_; }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override {
        return std::make_unique<Scratch>();
    }
    void write(const SampleDraw& draw, Scratch&, std::span<std::byte* const> places,
               SampleCost&) const override {
        auto* x = reinterpret_cast<float*>(places[0]);
        float sum = 0.5f;
        for (int i = 0; i < 4; ++i) {
            x[i] = std::sin(static_cast<float>(draw.index * 7 + i * 3));
            sum += x[i] * static_cast<float>(i - 1);
        }
        *reinterpret_cast<float*>(places[1]) =
            draw.index == nan_ ? std::numeric_limits<float>::quiet_NaN() : sum;
    }
    [[nodiscard]] std::string name_of(std::int64_t index) const override {
        return "sample-" + std::to_string(index);
    }

  private:
    std::int64_t size_, nan_;
    std::vector<FieldSpec> fields_;
};

struct SmallModel : torch::nn::Module {
    SmallModel(std::int64_t width, bool has_idle)
        : first(register_module("first", torch::nn::Linear(4, width))),
          last(register_module("last", torch::nn::Linear(width, 1))) {
        if (has_idle) register_module("idle", torch::nn::Linear(2, 2));
    }
    torch::nn::Linear first, last;
};

class SmallJob final : public Job {
  public:
    explicit SmallJob(const SmallJobSettings& settings = {})
        : settings_(settings),
          model_(std::make_shared<SmallModel>(settings.width, settings.has_idle)) {}
    torch::nn::Module& model() override { return *model_; }
    torch::Tensor loss(const TensorBatch& batch) override {
        if (settings_.at_loss) settings_.at_loss(losses_++);
        auto first = [this](const torch::Tensor& x) { return torch::relu(model_->first(x)); };
        auto drop = [this](const torch::Tensor& x) {
            return settings_.dropout > 0 ? torch::dropout(x, settings_.dropout, true) : x;
        };
        torch::Tensor hidden = settings_.recomputes
                                   ? recomputed(first, batch[0], RandomNumbers::none)
                                   : first(batch[0]);
        hidden = settings_.recomputes_dropout ? recomputed(drop, hidden) : drop(hidden);
        if (settings_.heavy > 0) {
            torch::Tensor ballast = hidden.sum(1, true).expand({-1, settings_.heavy}).clone();
            hidden = hidden + 0.0 * ballast.mean(1, true);
        }
        return torch::mse_loss(model_->last(hidden), batch[1]);
    }
    std::shared_ptr<const SampleSource> training_data() override {
        return std::make_shared<SmallSource>(settings_.size, settings_.nan_sample);
    }
    std::shared_ptr<const SampleSource> validation_data() override {
        if (!settings_.validates) return nullptr;
        return std::make_shared<SmallSource>(16, -1);
    }
    [[nodiscard]] Metric metric() const override {
        return {.name = "error", .unit = "", .higher_is_better = false};
    }
    void evaluate(const TensorBatch& batch, torch::Tensor& sums) override {
        EXPECT_FALSE(torch::GradMode::is_enabled());
        EXPECT_FALSE(model_->is_training());
        TORCH_CHECK_WITH(OutOfMemoryError, batch[0].size(0) <= settings_.evaluates_most, "no room");
        if (!settings_.own_sums.empty()) {
            std::size_t at = std::min(evaluations_, settings_.own_sums.size() - 1);
            sums += settings_.own_sums[at] * static_cast<double>(batch[0].size(0)) / 8;
            return;
        }
        torch::Tensor out = model_->last(torch::relu(model_->first(batch[0])));
        sums += (out - batch[1]).square().sum();
    }
    [[nodiscard]] int metric_sums() const override { return 1; }
    [[nodiscard]] double metric_value(const torch::Tensor& sums) const override {
        if (!settings_.metrics.empty()) {
            std::size_t at = std::min(evaluations_++, settings_.metrics.size() - 1);
            return settings_.metrics[at];
        }
        ++evaluations_;
        return sums.const_data_ptr<double>()[0];
    }

  private:
    SmallJobSettings settings_;
    std::shared_ptr<SmallModel> model_;
    mutable std::size_t evaluations_ = 0;
    std::int64_t losses_ = 0;
};

class ListeningObserver final : public TrainObserver {
  public:
    void progress(const TrainProgress& progress) override { lines.push_back(progress); }
    void say(const std::string& line) override { said.push_back(line); }
    bool stop_wanted(const TrainPlace& place) override {
        places.push_back(place);
        return stop_after >= 0 && asked++ >= stop_after;
    }

    std::vector<TrainProgress> lines;
    std::vector<TrainPlace> places;
    std::vector<std::string> said;
    std::int64_t stop_after = -1, asked = 0;
};

// Settings for tests: no loader workers, one thread, no checkpoints by default.
inline TrainSettings small_settings() {
    TrainSettings settings;
    settings.batch_size = 8;
    settings.eval_batch_size = 8;
    settings.workers = 0;
    settings.epochs = 4;
    settings.log_interval = 4;
    settings.checkpoint_epochs = 0;
    settings.schedule.highest = 0.01;
    settings.device.threads = 1;
    return settings;
}

}  // namespace saturate
