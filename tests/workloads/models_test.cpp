// SPDX-License-Identifier: Apache-2.0
// The five models: their sizes as stated, and losses that gradients lower.
#include <gtest/gtest.h>

#include <functional>

#include "engine/device_backend.h"
#include "workloads/classifier.h"
#include "workloads/locator.h"
#include "workloads/restoration.h"
#include "workloads/sequence.h"
#include "workloads/window_cnn.h"

namespace saturate {
namespace {

std::int64_t parameters_of(const torch::nn::Module& model) {
    std::int64_t total = 0;
    for (const torch::Tensor& parameter : model.parameters()) total += parameter.numel();
    return total;
}

// Plain gradient descent on one batch; the loss must fall by half. One thread: the batches are
// tiny.
void expect_learns(Job& job, const TensorBatch& batch, double rate, int steps) {
    at::set_num_threads(1);
    double first = job.loss(batch).item<double>(), last = first;
    for (int i = 0; i < steps; ++i) {
        torch::Tensor loss = job.loss(batch);
        last = loss.item<double>();
        job.model().zero_grad();
        loss.backward();
        torch::NoGradGuard no_grad;
        for (torch::Tensor& parameter : job.model().parameters())
            parameter.sub_(parameter.grad(), rate);
    }
    EXPECT_LT(last, first / 2);
}

double evaluate_one(Job& job, const TensorBatch& batch) {
    torch::NoGradGuard no_grad;
    job.model().eval();
    torch::Tensor sums = torch::zeros({job.metric_sums()}, torch::kDouble);
    job.evaluate(batch, sums);
    job.model().train();
    return job.metric_value(sums);
}

// The residual network of 18 layers has 11,689,512 parameters; one channel instead of three and 10
// classes instead of 1000 leave this many.
TEST(ModelsTest, ClassifierIsTheResidualNetworkOf18Layers) {
    EXPECT_EQ(parameters_of(ClassifierNet({})), 11'175'370);
}

TEST(ModelsTest, LocatorHas3Point5MillionParameters) {
    EXPECT_EQ(parameters_of(LocatorNet()), 3'483'326);
}

TEST(ModelsTest, RestorationGrowsWithChannelsAndBlocks) {
    EXPECT_EQ(parameters_of(RestorationNet({.base_channels = 32, .num_blocks = 4})), 75'747);
    EXPECT_EQ(parameters_of(RestorationNet({.base_channels = 64, .num_blocks = 16})),
              3 * 64 * 9 + 64 + 32 * (64 * 64 * 9 + 64) + 64 * 3 * 9 + 3);
}

TEST(ModelsTest, SequenceCountsFourGatesOrThree) {
    EXPECT_EQ(parameters_of(SequenceNet({})), 54'337);
    EXPECT_EQ(parameters_of(SequenceNet({.is_gru = true})), 40'769);
}

TEST(ModelsTest, WindowCnnFollowsItsWindow) {
    EXPECT_EQ(parameters_of(WindowCnn({})), 117'441);
    EXPECT_EQ(parameters_of(WindowCnn({.window_size = 48})), 117'441 + 64 * 24 * 64);
}

TEST(ModelsTest, RestorationLearnsABatchAndGainsOverItsInput) {
    torch::manual_seed(1);
    auto job = restoration_job({.shape = {.base_channels = 8, .num_blocks = 1}}, {});
    torch::Tensor target = torch::rand({4, 3, 16, 16}) * 0.5 + 0.25;
    TensorBatch batch = {target * 0.5, target};
    EXPECT_EQ(evaluate_one(*job, batch), 0);  // begins with what it is given
    expect_learns(*job, batch, 0.3, 60);
    EXPECT_GT(evaluate_one(*job, batch), 3);
}

// The same loss and gradients, to the last bit, and less memory. Only an LSTM is computed in another
// order without gradients (by oneDNN): 30 steps of three layers, each with a rounding of 2^-24.
TEST(ModelsTest, BlocksThatAreComputedAgainGiveTheSameGradients) {
    at::set_num_threads(1);
    auto backend = make_cpu_backend({.threads = 1}, false);
    auto compare = [&](const std::function<std::unique_ptr<Job>(bool)>& make,
                       const TensorBatch& batch, double allowed = 0) {
        std::vector<torch::Tensor> gradients[2];
        std::uint64_t peaks[2] = {};
        double losses[2] = {};
        for (bool again : {false, true}) {
            torch::manual_seed(3);
            auto job = make(again);
            backend->reset_peak();
            torch::Tensor loss = job->loss(batch);
            loss.backward();
            peaks[again] = backend->memory().peak_bytes;
            losses[again] = loss.item<double>();
            for (const torch::Tensor& weight : job->model().parameters())
                gradients[again].push_back(weight.grad().clone());
            for (const torch::Tensor& buffer : job->model().buffers())
                gradients[again].push_back(buffer.clone());
        }
        EXPECT_NEAR(losses[0], losses[1], allowed);
        for (std::size_t i = 0; i < gradients[0].size(); ++i)
            EXPECT_TRUE(torch::allclose(gradients[0][i], gradients[1][i], 0, allowed)) << i;
        EXPECT_LT(peaks[1], peaks[0]);
    };
    compare(
        [](bool again) {
            return restoration_job({.shape = {.num_blocks = 6, .recomputes = again}}, {});
        },
        {torch::rand({2, 3, 48, 48}), torch::rand({2, 3, 48, 48})});
    compare(
        [](bool again) { return classifier_job({.base_channels = 8, .recomputes = again}, {}); },
        {torch::randn({16, 1, 128, 128}), torch::randint(10, {16}, torch::kLong)});
    compare([](bool again) { return locator_job(8, {}, again); },
            {torch::rand({8, 3, 128, 128}), torch::full({8, 4}, 30.0F)});
    compare([](bool again) { return window_cnn_job({.recomputes = again}, {}); },
            {torch::randn({256, 1, 24, 16}), torch::randn({256})});
    for (bool is_gru : {false, true}) {
        compare(
            [&](bool again) {
                return sequence_job({.num_layers = 3, .is_gru = is_gru, .recomputes = again}, {});
            },
            {torch::randn({64, 30, 16}), torch::randn({64})}, is_gru ? 0 : 1e-5);
    }
}

TEST(ModelsTest, PerceptualLossIsZeroOnlyForTheSamePicture) {
    torch::manual_seed(1);
    auto plain = restoration_job({.shape = {.base_channels = 8, .num_blocks = 1}}, {});
    torch::manual_seed(1);
    auto judged = restoration_job(
        {.shape = {.base_channels = 8, .num_blocks = 1}, .use_perceptual = true}, {});
    EXPECT_EQ(parameters_of(judged->model()), parameters_of(plain->model()));
    torch::Tensor picture = torch::rand({1, 3, 16, 16}), other = torch::rand({1, 3, 16, 16});
    EXPECT_EQ(judged->loss({picture, picture}).item<float>(), 0);
    EXPECT_GT(judged->loss({picture, other}).item<float>(),
              plain->loss({picture, other}).item<float>());
}

TEST(ModelsTest, LocatorLearnsABatchAndFindsItsPoints) {
    torch::manual_seed(1);
    auto job = locator_job(8, {});
    torch::Tensor points =
        torch::tensor({{20.0f, 12.0f, 50.0f, 20.0f}, {40.0f, 8.0f, 9.5f, 25.0f}});
    torch::Tensor picture = torch::zeros({2, 3, 32, 64});
    for (int n = 0; n < 2; ++n) {
        auto at = points.accessor<float, 2>();
        for (int k = 0; k < 2; ++k) {
            auto x = static_cast<std::int64_t>(at[n][2 * k]);
            auto y = static_cast<std::int64_t>(at[n][2 * k + 1]);
            picture[n][k].slice(0, y - 2, y + 2).slice(1, x - 2, x + 2).fill_(1);
        }
    }
    auto largest_error = [&] {
        auto found = locate(static_cast<LocatorNet&>(job->model()).forward(picture));
        return (found - points).abs().max().item<float>();
    };
    EXPECT_EQ(evaluate_one(*job, {picture, points}), 0);
    EXPECT_GT(largest_error(), 15);
    expect_learns(*job, {picture, points}, 0.05, 150);
    EXPECT_LT(largest_error(), 10);  // cells of 4 pixels; rounding differs between processors
}

TEST(ModelsTest, LocatorPointsComeBackFromPerfectMaps) {
    torch::Tensor points = torch::tensor({{13.0f, 7.5f, 62.0f, 0.5f}});
    torch::Tensor maps = torch::zeros({1, 2, 8, 16}), offsets = torch::zeros({1, 4, 8, 16});
    maps[0][0][1][3] = 9;  // 13 / 4 - 0.5 = 2.75: cell 3, offset -0.25
    offsets[0][0][1][3] = -0.25;
    offsets[0][1][1][3] = 0.375;
    maps[0][1][0][15] = 9;
    offsets[0][3][0][15] = -0.375;
    EXPECT_TRUE(torch::equal(locate({maps, offsets}), points));
}

TEST(ModelsTest, ClassifierLearnsABatch) {
    torch::manual_seed(1);
    auto job = classifier_job({.base_channels = 8, .num_classes = 4}, {});
    TensorBatch batch = {torch::randn({8, 1, 32, 32}), torch::tensor({0, 1, 2, 3, 0, 1, 2, 3})};
    expect_learns(*job, batch, 0.1, 20);
}

TEST(ModelsTest, ForecastsAreComparedWithTheLastValue) {
    torch::manual_seed(1);
    auto job = sequence_job({.num_features = 3, .hidden_size = 8, .num_layers = 1},
                            {.parts = {}, .target_column = 1});
    torch::Tensor window = torch::randn({16, 5, 3});
    torch::Tensor target = window.select(1, -1).select(1, 1).unsqueeze(1) + 1;  // last + 1
    torch::NoGradGuard no_grad;
    torch::Tensor sums = torch::zeros({2}, torch::kDouble);
    job->evaluate({window, target}, sums);
    EXPECT_NEAR(sums[1].item<double>(), 16, 1e-4);
    double error = torch::mse_loss(static_cast<SequenceNet&>(job->model()).forward(window), target)
                       .item<double>();
    EXPECT_NEAR(job->metric_value(sums), std::sqrt(error), 1e-4);
}

TEST(ModelsTest, SequenceAndWindowCnnLearnABatch) {
    for (bool is_gru : {false, true}) {
        torch::manual_seed(1);
        auto job = sequence_job(
            {.num_features = 3, .hidden_size = 16, .num_layers = 2, .is_gru = is_gru}, {});
        torch::Tensor window = torch::randn({16, 6, 3});
        expect_learns(*job, {window, window.sum({1, 2}).unsqueeze(1)}, 0.1, 100);
    }
    torch::manual_seed(1);
    auto job = window_cnn_job({.window_size = 8, .num_features = 6, .base_channels = 8}, {});
    torch::Tensor window = torch::randn({16, 1, 8, 6});
    expect_learns(*job, {window, window.sum({2, 3}) / 4}, 0.02, 60);
}

TEST(ModelsTest, WindowsTooSmallToHalveTwiceAreRefused) {
    try {
        (void)window_cnn_job({.window_size = 3, .num_features = 16}, {});
        FAIL();
    } catch (const std::exception& error) {
        EXPECT_STREQ(error.what(),
                     "error: windows of 3 rows and 16 features\n"
                     "  expected: at least 4 of each: the network halves both twice\n"
                     "  fix:      window_size: 24");
    }
}

}  // namespace
}  // namespace saturate
