// SPDX-License-Identifier: Apache-2.0
// The five jobs beside the same models in Python: the first 20 losses from the same weights,
// batches and optimizer, and outputs of weights that were written to a file. Runs where there is a
// Python with PyTorch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "engine/safetensors.h"
#include "engine/step.h"
#include "support/run.h"
#include "workloads/classifier.h"
#include "workloads/locator.h"
#include "workloads/restoration.h"
#include "workloads/sequence.h"
#include "workloads/window_cnn.h"

namespace saturate {
namespace {

constexpr int kSteps = 20;
constexpr int kBatches = 4;

// Both sides run the kernels of the same LibTorch on one thread, so a step differs only by the
// order of sums in the optimizer (one fused loop against one per parameter): about 1e-7 of a
// weight. Twenty steps through batch normalisation and sharp losses multiply that by a few hundred.
// Of the first loss: what weights differ by moves outputs, and a loss that has become small says
// nothing of their size.
constexpr double kTolerance = 2e-4;

struct Case {
    std::string name;
    std::string job;
    Json settings;
    std::function<std::unique_ptr<Job>()> make;
    std::function<TensorBatch()> batch;
    OptimizerSettings optimizer;
    double learning_rate = 1e-3;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

NamedTensors tensors_of(Job& job, const std::vector<TensorBatch>& batches) {
    NamedTensors out;
    for (const auto& item : job.model().named_parameters())
        out.emplace_back("model." + item.key(), item.value().detach().clone());
    for (const auto& item : job.model().named_buffers())
        out.emplace_back("model." + item.key(), item.value().clone());
    for (std::size_t n = 0; n < batches.size(); ++n) {
        for (std::size_t m = 0; m < batches[n].size(); ++m)
            out.emplace_back(fmt::format("batch.{}.{}", n, m), batches[n][m]);
    }
    return out;
}

std::vector<double> ask_python(const TemporaryFolder& folder, Json request, Job& job,
                               const std::vector<TensorBatch>& batches) {
    std::filesystem::path tensors = folder.path() / "tensors.safetensors";
    write_safetensors(tensors, tensors_of(job, batches));
    request.set("tensors", tensors.string());
    std::filesystem::path file = folder.file("request.json", request.line());
    Ran ran = run({python_with_torch(SATURATE_SOURCE_DIR), "-B",
                   SATURATE_SOURCE_DIR "/tests/support/torch_compare.py", file.string()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::vector<double> out;
    Json said = Json::parse(ran.out, "python");
    for (const Json& item : said.items()) out.push_back(item.number().value_or(NAN));
    return out;
}

const char* name_of(OptimizerKind kind) {
    return kind == OptimizerKind::sgd ? "sgd" : kind == OptimizerKind::adam ? "adam" : "adamw";
}

class PyTorchTest : public testing::TestWithParam<Case> {};

TEST_P(PyTorchTest, FirstTwentyLossesAreThoseOfPython) {
    if (python_with_torch(SATURATE_SOURCE_DIR).empty())
        GTEST_SKIP() << "no Python with PyTorch: tests/support/python_torch --make";
    const Case& one = GetParam();
    torch::manual_seed(7);
    auto job = one.make();
    std::vector<TensorBatch> batches;
    for (int i = 0; i < kBatches; ++i) batches.push_back(one.batch());
    TemporaryFolder folder;
    Json request = Json::object({{"wish", "losses"},
                                 {"job", one.job},
                                 {"settings", one.settings},
                                 {"optimizer", name_of(one.optimizer.kind)},
                                 {"learning_rate", one.learning_rate},
                                 {"weight_decay", one.optimizer.weight_decay},
                                 {"momentum", one.optimizer.momentum},
                                 {"steps", kSteps}});
    std::vector<double> expected = ask_python(folder, request, *job, batches);
    ASSERT_EQ(expected.size(), std::size_t{kSteps});

    auto backend = make_cpu_backend({.threads = 1}, false);
    TrainingStep step(*job, {.optimizer = one.optimizer}, *backend);
    double tolerance = kTolerance * std::abs(expected.front());
    for (int i = 0; i < kSteps; ++i) {
        step.run({&batches[static_cast<std::size_t>(i % kBatches)], 1}, one.learning_rate);
        EXPECT_NEAR(step.loss().item<double>(), expected[static_cast<std::size_t>(i)], tolerance)
            << "step " << i;
    }
    EXPECT_LT(expected.back(), expected.front());  // and something was learnt
}

std::vector<Case> cases() {
    return {
        {.name = "restoration",
         .job = "restoration",
         .settings = Json::object({{"base_channels", 8}, {"num_blocks", 2}}),
         .make =
             [] {
                 return restoration_job({.shape = {8, 2}}, {});
             },
         .batch =
             [] {
                 torch::Tensor target = torch::rand({2, 3, 24, 24});
                 return TensorBatch{target * 0.8 + 0.1 * torch::rand({2, 3, 24, 24}), target};
             },
         .optimizer = {.kind = OptimizerKind::adamw, .weight_decay = 0.01}},
        {.name = "locator",
         .job = "locator",
         .settings = Json::object({{"base_channels", 8}}),
         .make = [] { return locator_job(8, {}); },
         .batch =
             [] {
                 torch::Tensor scale = torch::tensor({64.0f, 64.0f, 64.0f, 64.0f});
                 return TensorBatch{torch::rand({4, 3, 64, 64}), torch::rand({4, 4}) * scale};
             },
         // Not Adam: the biases and scales before its many normalisations have gradients that are
         // rounding alone, and Adam makes whole steps of them.
         .optimizer = {.kind = OptimizerKind::sgd, .weight_decay = 1e-4, .momentum = 0.9},
         .learning_rate = 0.01},
        {.name = "classifier",
         .job = "classifier",
         .settings = Json::object({{"base_channels", 8}, {"num_classes", 4}}),
         .make = [] { return classifier_job({.base_channels = 8, .num_classes = 4}, {}); },
         .batch =
             [] {
                 torch::Tensor label = torch::randint(4, {8}, torch::kLong);
                 torch::Tensor mark = label.view({-1, 1, 1, 1}).to(torch::kFloat);
                 return TensorBatch{torch::randn({8, 1, 32, 32}) + mark, label};
             },
         .optimizer = {.kind = OptimizerKind::sgd, .weight_decay = 1e-4, .momentum = 0.9},
         .learning_rate = 0.01},
        {.name = "sequence",
         .job = "sequence",
         .settings = Json::object({{"num_features", 4}, {"hidden_size", 12}, {"num_layers", 2}}),
         .make =
             [] {
                 return sequence_job({.num_features = 4, .hidden_size = 12, .num_layers = 2}, {});
             },
         .batch =
             [] {
                 torch::Tensor window = torch::randn({16, 10, 4});
                 return TensorBatch{window, window.select(1, -1).sum(1, true) + 1};
             },
         .optimizer = {.kind = OptimizerKind::adam},
         .learning_rate = 1e-2},
        {.name = "sequence_gru",
         .job = "sequence",
         .settings = Json::object(
             {{"num_features", 4}, {"hidden_size", 12}, {"num_layers", 1}, {"cell", "gru"}}),
         .make =
             [] {
                 return sequence_job(
                     {.num_features = 4, .hidden_size = 12, .num_layers = 1, .is_gru = true}, {});
             },
         .batch =
             [] {
                 torch::Tensor window = torch::randn({16, 10, 4});
                 return TensorBatch{window, window.select(1, -1).sum(1, true) + 1};
             },
         .optimizer = {.kind = OptimizerKind::adam},
         .learning_rate = 1e-2},
        {.name = "window_cnn",
         .job = "window_cnn",
         .settings = Json::object({{"window_size", 12}, {"num_features", 8}, {"base_channels", 8}}),
         .make =
             [] {
                 return window_cnn_job({.window_size = 12, .num_features = 8, .base_channels = 8},
                                       {});
             },
         .batch =
             [] {
                 torch::Tensor window = torch::randn({16, 1, 12, 8});
                 return TensorBatch{window, window.select(2, -1).sum(2) + 1};
             },
         .optimizer = {.kind = OptimizerKind::adam}},
    };
}

INSTANTIATE_TEST_SUITE_P(Jobs, PyTorchTest, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

void expect_same_outputs(Job& job, const torch::Tensor& input, const torch::Tensor& output,
                         Json request) {
    TemporaryFolder folder;
    request.set("wish", "outputs");
    std::vector<double> found = ask_python(folder, request, job, {{input}});
    torch::Tensor flat = output.flatten().to(torch::kDouble).contiguous();
    ASSERT_EQ(static_cast<std::int64_t>(found.size()), flat.numel());
    // The same kernels without gradients; float32 printed and read again loses nothing.
    for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], flat[static_cast<std::int64_t>(i)].item<double>(), 1e-4);
}

TEST(PyTorchWeightsTest, ClassifierWeightsAreTorchvisionsResnet18) {
    if (python_with_torch(SATURATE_SOURCE_DIR).empty())
        GTEST_SKIP() << "no Python with PyTorch: tests/support/python_torch --make";
    torch::manual_seed(5);
    auto job = classifier_job({}, {});
    torch::NoGradGuard no_grad;
    torch::Tensor input = torch::randn({2, 1, 64, 64});
    (void)job->loss({input, torch::tensor({1, 2})});  // moves the running means
    job->model().eval();
    torch::Tensor output = static_cast<ClassifierNet&>(job->model()).forward(input);
    expect_same_outputs(
        *job, input, output,
        Json::object({{"torchvision", true}, {"settings", Json::object({{"num_classes", 10}})}}));
}

TEST(PyTorchWeightsTest, WindowCnnWeightsGiveTheSameOutputs) {
    if (python_with_torch(SATURATE_SOURCE_DIR).empty())
        GTEST_SKIP() << "no Python with PyTorch: tests/support/python_torch --make";
    torch::manual_seed(5);
    auto job = window_cnn_job({}, {});
    torch::NoGradGuard no_grad;
    torch::Tensor input = torch::randn({4, 1, 24, 16});
    (void)job->loss({input, torch::randn({4, 1})});
    job->model().eval();
    torch::Tensor output = static_cast<WindowCnn&>(job->model()).forward(input);
    Json settings =
        Json::object({{"window_size", 24}, {"num_features", 16}, {"base_channels", 32}});
    expect_same_outputs(*job, input, output,
                        Json::object({{"job", "window_cnn"}, {"settings", settings}}));
}

}  // namespace
}  // namespace saturate
