// SPDX-License-Identifier: Apache-2.0
#include "workloads/classifier.h"

#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/container/modulelist.h>

#include "base/error.h"
#include "engine/recompute.h"

namespace saturate {

namespace {

struct ConvolutionShape {
    std::int64_t inputs, outputs, kernel, stride;
};

torch::nn::Conv2d convolution(const ConvolutionShape& shape) {
    torch::nn::Conv2d out(torch::nn::Conv2dOptions(shape.inputs, shape.outputs, shape.kernel)
                              .stride(shape.stride)
                              .padding(shape.kernel / 2)
                              .bias(false));
    torch::nn::init::kaiming_normal_(out->weight, 0, torch::kFanOut, torch::kReLU);
    return out;
}

class Classifier final : public JobWithData {
  public:
    Classifier(const ClassifierShape& shape, JobData data)
        : JobWithData(std::move(data)), net_(std::make_shared<ClassifierNet>(shape)) {}
    torch::nn::Module& model() override { return *net_; }
    torch::Tensor loss(const TensorBatch& batch) override {
        return torch::cross_entropy_loss(net_->forward(batch[0]), batch[1]);
    }
    [[nodiscard]] Metric metric() const override {
        return {.name = "accuracy", .unit = "%", .higher_is_better = true};
    }
    void evaluate(const TensorBatch& batch, torch::Tensor& sums) override {
        sums[0] += (net_->forward(batch[0]).argmax(1) == batch[1]).sum();
        sums[1] += static_cast<double>(batch[0].size(0));
    }
    [[nodiscard]] int metric_sums() const override { return 2; }
    [[nodiscard]] double metric_value(const torch::Tensor& sums) const override {
        const double* values = sums.const_data_ptr<double>();
        return 100 * values[0] / values[1];
    }

  private:
    std::shared_ptr<ClassifierNet> net_;
};

}  // namespace

// Two 3x3 convolutions with a shortcut; the shortcut has a 1x1 convolution if the size changes.
struct ClassifierNet::Block : torch::nn::Module {
    Block(std::int64_t inputs, std::int64_t outputs, std::int64_t stride)
        : conv1(register_module("conv1", convolution({inputs, outputs, 3, stride}))),
          bn1(register_module("bn1", torch::nn::BatchNorm2d(outputs))),
          conv2(register_module("conv2", convolution({outputs, outputs, 3, 1}))),
          bn2(register_module("bn2", torch::nn::BatchNorm2d(outputs))) {
        if (stride == 1 && inputs == outputs) return;
        auto list = register_module("downsample", torch::nn::ModuleList());
        shortcut_conv = convolution({inputs, outputs, 1, stride});
        shortcut_norm = torch::nn::BatchNorm2d(outputs);
        list->push_back(shortcut_conv);
        list->push_back(shortcut_norm);
    }
    torch::Tensor forward(const torch::Tensor& x) {
        torch::Tensor y = bn2(conv2(torch::relu(bn1(conv1(x)))));
        return torch::relu(y + (shortcut_conv ? shortcut_norm(shortcut_conv(x)) : x));
    }
    torch::nn::Conv2d conv1;
    torch::nn::BatchNorm2d bn1;
    torch::nn::Conv2d conv2;
    torch::nn::BatchNorm2d bn2;
    torch::nn::Conv2d shortcut_conv{nullptr};
    torch::nn::BatchNorm2d shortcut_norm{nullptr};
};

ClassifierNet::ClassifierNet(const ClassifierShape& shape) : recomputes_(shape.recomputes) {
    std::int64_t width = shape.base_channels, inputs = width;
    conv1_ = register_module("conv1", convolution({1, width, 7, 2}));
    bn1_ = register_module("bn1", torch::nn::BatchNorm2d(width));
    for (int i = 1; i <= 4; ++i) {
        auto layer = register_module(fmt::format("layer{}", i), torch::nn::ModuleList());
        for (int k = 0; k < 2; ++k) {
            blocks_.push_back(std::make_shared<Block>(inputs, width, i > 1 && k == 0 ? 2 : 1));
            layer->push_back(blocks_.back());
            inputs = width;
        }
        width *= 2;
    }
    fc_ = register_module("fc", torch::nn::Linear(inputs, shape.num_classes));
}

torch::Tensor ClassifierNet::forward(const torch::Tensor& picture) {
    torch::Tensor x = torch::max_pool2d(torch::relu(bn1_(conv1_(picture))), 3, 2, 1);
    for (const auto& block : blocks_) {
        auto run = [block](const torch::Tensor& in) { return block->forward(in); };
        x = recomputes_ ? recomputed(run, x, RandomNumbers::none, block->buffers()) : run(x);
    }
    return fc_(x.mean({2, 3}));
}

std::unique_ptr<Job> classifier_job(const ClassifierShape& shape, JobData data) {
    return std::make_unique<Classifier>(shape, std::move(data));
}

std::unique_ptr<Job> make_classifier(const Settings& settings) {
    OpenedData data = open_job_data(
        settings, {.kind = "images in a folder per class, below train/ and val/",
                   .fields = {{.name = "image", .shape = {1, -1, -1}},
                              {.name = "label", .element = Element::int64, .shape = {}}}});
    auto classes = static_cast<std::int64_t>(data.classes.size());
    ClassifierShape shape{
        .base_channels = whole_or(settings, Setting::base_channels, 64),
        .num_classes = whole_or(settings, Setting::num_classes, classes),
        .recomputes = settings.flag(Setting::gradient_checkpointing).value_or(false)};
    if (shape.num_classes == 0) {  // shards do not tell the number of classes
        throw UserError({.found = "the data does not show how many classes there are",
                         .expected = "num_classes in the configuration",
                         .fix = "num_classes: 10"});
    }
    if (shape.num_classes < classes) {
        throw UserError({.where = settings.get(Setting::num_classes)->place,
                         .found = fmt::format("num_classes is {}", shape.num_classes),
                         .expected = fmt::format("at least {}, the folders of the data", classes),
                         .fix = fmt::format("num_classes: {}", classes)});
    }
    return classifier_job(shape, {data.training, data.validation});
}

}  // namespace saturate
