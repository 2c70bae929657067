// SPDX-License-Identifier: Apache-2.0
#include "engine/sim_count.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

namespace saturate {
namespace {

double flops_of(const StepCost& cost, OpClass kind) {
    double sum = 0;
    for (const OpCost& op : cost.ops) {
        if (op.kind == kind) sum += op.flops_per_sample;
    }
    return sum;
}

// A convolution of 8 to 16 channels, 3 x 3, on 20 x 10 points: 2 x 16 x 200 x 72 operations
// forward, twice that backward.
TEST(SimCountTest, CountsConvolutionsOfBothDirections) {
    torch::nn::Conv2d conv(torch::nn::Conv2dOptions(8, 16, 3).padding(1));
    torch::nn::BatchNorm2d norm(16);
    StepCost cost = count_step(
        [&](std::int64_t samples) {
            torch::Tensor x = torch::rand({samples, 8, 20, 10}).requires_grad_();
            norm(conv(x)).relu().sum().backward();
        },
        16);
    EXPECT_NEAR(flops_of(cost, OpClass::convolution), 3.0 * 2 * 16 * 200 * 72, 1);
    int norms = 0;
    for (const OpCost& op : cost.ops) norms += op.name.find("batch_norm") != std::string::npos;
    EXPECT_EQ(norms, 2) << "forward and backward, once each";
}

TEST(SimCountTest, TheFirstLayerHasNoGradientOfItsInput) {
    torch::nn::Conv2d conv(torch::nn::Conv2dOptions(8, 16, 3).padding(1));
    StepCost cost = count_step(
        [&](std::int64_t samples) {
            conv(torch::rand({samples, 8, 20, 10})).sum().backward();
        },
        16);
    EXPECT_NEAR(flops_of(cost, OpClass::convolution), 2.0 * 2 * 16 * 200 * 72, 1);
}

TEST(SimCountTest, CountsBytesAsFp32WhateverTheTypeIs) {
    auto bytes_of = [](at::ScalarType type) {
        StepCost cost = count_step(
            [&](std::int64_t samples) {
                torch::Tensor x = torch::ones({samples, 100}, type);
                (void)x.mul(x);
            },
            16);
        for (const OpCost& op : cost.ops) {
            if (op.name == "aten::mul") return op.bytes_per_sample;
        }
        return 0.0;
    };
    EXPECT_EQ(bytes_of(torch::kFloat), 3 * 400);
    EXPECT_EQ(bytes_of(torch::kBFloat16), 3 * 400);
}

// A sequence of 20: each step waits for the one before, whatever the batch.
TEST(SimCountTest, ASequenceTakesItsStepsInTurn) {
    torch::nn::LSTM lstm(torch::nn::LSTMOptions(4, 8).batch_first(true));
    StepCost cost = count_step(
        [&](std::int64_t samples) {
            std::get<0>(lstm(torch::rand({samples, 20, 4}))).sum().backward();
        },
        16);
    double in_turn = 0;
    for (const OpCost& op : cost.ops) {
        if (op.kind == OpClass::recurrent) in_turn += op.in_turn;
    }
    EXPECT_EQ(in_turn, 20 + 2 * 20);
    GpuFacts gpu = match_gpu("RTX 3090")->facts;
    double small = simulate_step(cost, gpu, {}, 16).device_seconds;
    double large = simulate_step(cost, gpu, {}, 64).device_seconds;
    EXPECT_NEAR(large / small, 1, 0.01) << "four times the samples in the same time";
}

// 32 to 64: 2 x 32 x 64 operations forward, twice that backward.
TEST(SimCountTest, CountsProductsOnce) {
    torch::nn::Linear linear(32, 64);
    StepCost cost = count_step(
        [&](std::int64_t samples) {
            torch::Tensor x = torch::rand({samples, 32}).requires_grad_();
            linear(x).sum().backward();
        },
        16);
    EXPECT_NEAR(flops_of(cost, OpClass::matrix), 3.0 * 2 * 32 * 64, 1);
    for (const OpCost& op : cost.ops)
        EXPECT_EQ(op.name.find("evaluate_function"), std::string::npos);
}

}  // namespace
}  // namespace saturate
