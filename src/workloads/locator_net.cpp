// SPDX-License-Identifier: Apache-2.0
#include <torch/nn/functional/upsampling.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>

#include "engine/recompute.h"
#include "workloads/locator.h"

namespace saturate {

namespace {

using torch::relu;
using torch::Tensor;
using torch::nn::ModuleList;

constexpr std::int64_t kPoints = 2;
constexpr std::int64_t kStemChannels = 32;
constexpr int kBlocks[] = {1, 1, 3, 6};  // per branch: most work at the smallest size

struct ConvNorm : torch::nn::Module {
    struct Shape {
        std::int64_t inputs, outputs, kernel, stride = 1, groups = 1;
    };
    explicit ConvNorm(const Shape& shape)
        : conv(register_module(
              "conv",
              torch::nn::Conv2d(torch::nn::Conv2dOptions(shape.inputs, shape.outputs, shape.kernel)
                                    .stride(shape.stride)
                                    .padding(shape.kernel / 2)
                                    .groups(shape.groups)
                                    .bias(false)))),
          norm(register_module("norm", torch::nn::BatchNorm2d(shape.outputs))) {
        torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
    }
    Tensor forward(const Tensor& x) { return norm(conv(x)); }
    torch::nn::Conv2d conv;
    torch::nn::BatchNorm2d norm;
};

std::shared_ptr<ConvNorm> conv_norm(const ConvNorm::Shape& shape) {
    return std::make_shared<ConvNorm>(shape);
}

// 1x1, depthwise 3x3 and 1x1 convolutions with a shortcut.
struct LightBlock : torch::nn::Module {
    explicit LightBlock(std::int64_t channels)
        : mix1(register_module("mix1", conv_norm({channels, channels, 1}))),
          depthwise(register_module("depthwise", conv_norm({channels, channels, 3, 1, channels}))),
          mix2(register_module("mix2", conv_norm({channels, channels, 1}))) {}
    Tensor forward(const Tensor& x) {
        return relu(x + mix2->forward(depthwise->forward(relu(mix1->forward(x)))));
    }
    std::shared_ptr<ConvNorm> mix1, depthwise, mix2;
};

// Halves the size: depthwise 3x3 of stride 2, then 1x1.
struct Down : torch::nn::Module {
    Down(std::int64_t inputs, std::int64_t outputs)
        : depthwise(register_module("depthwise", conv_norm({inputs, inputs, 3, 2, inputs}))),
          mix(register_module("mix", conv_norm({inputs, outputs, 1}))) {}
    Tensor forward(const Tensor& x) { return mix->forward(depthwise->forward(x)); }
    std::shared_ptr<ConvNorm> depthwise, mix;
};

// Connects one branch to another: up is a 1x1 convolution that repeats each cell, down is a chain
// of halvings.
struct Path {
    std::shared_ptr<ConvNorm> up;
    std::vector<std::shared_ptr<Down>> down;
};

// Runs the blocks of every branch. Then each of the first `outputs` branches receives the sum of
// all branches, resampled to its size.
struct Exchange : torch::nn::Module {
    Exchange(const std::vector<std::int64_t>& widths, std::size_t outputs, bool recomputes);
    std::vector<Tensor> forward(std::vector<Tensor> xs);
    std::vector<std::vector<std::shared_ptr<LightBlock>>> branches;
    std::vector<std::vector<Path>> paths;  // [to][from]
    bool recomputes;
};

Exchange::Exchange(const std::vector<std::int64_t>& widths, std::size_t outputs, bool again)
    : recomputes(again) {
    auto branch_list = register_module("branches", ModuleList());
    auto path_list = register_module("paths", ModuleList());
    for (std::size_t i = 0; i < widths.size(); ++i) {
        ModuleList list;
        auto& blocks = branches.emplace_back();
        for (int k = 0; k < kBlocks[i]; ++k) {
            list->push_back(blocks.emplace_back(std::make_shared<LightBlock>(widths[i])));
        }
        branch_list->push_back(list);
    }
    for (std::size_t to = 0; to < outputs; ++to) {
        ModuleList into;
        paths.emplace_back(widths.size());
        for (std::size_t from = 0; from < widths.size(); ++from) {
            ModuleList list;
            Path& path = paths[to][from];
            if (from > to) {
                list->push_back(path.up = conv_norm({widths[from], widths[to], 1}));
            }
            for (std::size_t step = from; step < to; ++step) {
                std::int64_t outputs = step + 1 == to ? widths[to] : widths[from];
                list->push_back(
                    path.down.emplace_back(std::make_shared<Down>(widths[from], outputs)));
            }
            into->push_back(list);
        }
        path_list->push_back(into);
    }
}

Tensor follow(const Path& path, Tensor x, const Tensor& like) {
    namespace F = torch::nn::functional;
    if (path.up) {
        return F::interpolate(path.up->forward(x),
                              F::InterpolateFuncOptions()
                                  .size(std::vector<std::int64_t>{like.size(2), like.size(3)})
                                  .mode(torch::kNearest));
    }
    for (std::size_t i = 0; i < path.down.size(); ++i) {
        x = path.down[i]->forward(x);
        if (i + 1 < path.down.size()) x = relu(x);
    }
    return x;
}

std::vector<Tensor> Exchange::forward(std::vector<Tensor> xs) {
    for (std::size_t i = 0; i < branches.size(); ++i) {
        for (const auto& block : branches[i]) {
            auto run = [block](const Tensor& in) { return block->forward(in); };
            xs[i] = recomputes ? recomputed(run, xs[i], RandomNumbers::none, block->buffers())
                               : run(xs[i]);
        }
    }
    std::vector<Tensor> out;
    for (std::size_t to = 0; to < paths.size(); ++to) {
        Tensor total = xs[to];
        for (std::size_t from = 0; from < xs.size(); ++from) {
            if (from != to) total = total + follow(paths[to][from], xs[from], xs[to]);
        }
        out.push_back(relu(total));
    }
    return out;
}

}  // namespace

struct LocatorNet::Layers {
    std::shared_ptr<ConvNorm> stem, head;
    std::shared_ptr<Down> stem_down;
    std::vector<std::shared_ptr<Down>> grow;
    std::vector<std::vector<std::shared_ptr<Exchange>>> stages;
    torch::nn::Conv2d maps{nullptr}, offsets{nullptr};
};

LocatorNet::LocatorNet(std::int64_t base_channels, bool recomputes)
    : layers_(std::make_unique<Layers>()) {
    Layers& layers = *layers_;
    layers.stem = register_module("stem", conv_norm({3, kStemChannels, 3, 2}));
    layers.stem_down =
        register_module("stem_down", std::make_shared<Down>(kStemChannels, base_channels));
    auto grow = register_module("grow", ModuleList());
    auto stages = register_module("stages", ModuleList());
    std::vector<std::int64_t> widths = {base_channels};
    for (int modules : {1, 1, 2}) {  // with two, three and four branches
        grow->push_back(
            layers.grow.emplace_back(std::make_shared<Down>(widths.back(), 2 * widths.back())));
        widths.push_back(2 * widths.back());
        ModuleList list;
        auto& stage = layers.stages.emplace_back();
        for (int i = 0; i < modules; ++i) {
            // Only the finest branch of the last module is used.
            bool is_last = widths.size() == 4 && i + 1 == modules;
            list->push_back(stage.emplace_back(
                std::make_shared<Exchange>(widths, is_last ? 1 : widths.size(), recomputes)));
        }
        stages->push_back(list);
    }
    layers.head = register_module("head", conv_norm({base_channels, base_channels, 3}));
    auto last = [&](const char* name, std::int64_t outputs) {
        return register_module(
            name, torch::nn::Conv2d(torch::nn::Conv2dOptions(base_channels, outputs, 1)));
    };
    layers.maps = last("maps", kPoints);
    layers.offsets = last("offsets", 2 * kPoints);
}

LocatorNet::~LocatorNet() = default;

LocatorOutput LocatorNet::forward(const Tensor& picture) {
    Layers& layers = *layers_;
    std::vector<Tensor> xs = {relu(layers.stem_down->forward(relu(layers.stem->forward(picture))))};
    for (std::size_t i = 0; i < layers.stages.size(); ++i) {
        xs.push_back(relu(layers.grow[i]->forward(xs.back())));
        for (const auto& module : layers.stages[i]) xs = module->forward(std::move(xs));
    }
    Tensor x = relu(layers.head->forward(xs[0]));
    return {layers.maps(x), layers.offsets(x)};
}

}  // namespace saturate
