// SPDX-License-Identifier: Apache-2.0
// Compiled graphs: equal to the job they came from, found again in the cache, and every way in
// which there is none ends in a message. Building one needs a Python with PyTorch and a compiler.
#include "engine/compiled_step.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/text.h"
#include "support/run.h"
#include "workloads/restoration.h"
#include "workloads/sequence.h"
#include "workloads/window_cnn.h"

namespace saturate {
namespace {

std::unique_ptr<Job> small_job() {
    torch::manual_seed(3);
    return window_cnn_job({.window_size = 8, .num_features = 4, .base_channels = 4}, {});
}

TensorBatch small_batch() {
    torch::manual_seed(4);
    return {torch::randn({16, 1, 8, 4}), torch::randn({16, 1})};
}

double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
    return (a - b).abs().max().item<double>();
}

TEST(CompiledStepTest, WithoutPythonTheJobIsRunAndSaidSo) {
    TemporaryFolder folder;
    auto job = small_job();
    CompileOutcome outcome = compile_step(
        *job, small_batch(), {.cache = folder.path(), .python = {"/nonexistent/python"}});
    EXPECT_EQ(outcome.step, nullptr);
    EXPECT_EQ(outcome.message, "compile: not compiled: no /nonexistent/python");
}

TEST(CompiledStepTest, WhatAnInterpreterSaysIsPassedOn) {
    TemporaryFolder folder;
    std::filesystem::path python =
        folder.file("python", "#!/bin/sh\necho no module torch >&2\nexit 1\n");
    std::filesystem::permissions(python, std::filesystem::perms::owner_all);
    auto job = small_job();
    CompileOutcome outcome =
        compile_step(*job, small_batch(), {.cache = folder.path() / "g", .python = {python}});
    EXPECT_EQ(outcome.step, nullptr);
    EXPECT_TRUE(outcome.message.starts_with("compile: not compiled: " + python.string() +
                                            ": no module torch (all of it: "))
        << outcome.message;
}

TEST(CompiledStepTest, RecurrentLayersAreLeftAsTheyAre) {
    TemporaryFolder folder;
    auto job = sequence_job({.num_features = 3, .hidden_size = 4, .num_layers = 1}, {});
    CompileOutcome outcome = compile_step(*job, {torch::randn({2, 5, 3}), torch::randn({2, 1})},
                                          {.cache = folder.path(), .python = {}});
    EXPECT_EQ(outcome.message, "compile: not compiled: recurrent layers are faster as they are");
}

TEST(CompiledStepTest, TracingLeavesTheModelAsItWas) {
    TemporaryFolder folder;
    auto job = small_job();
    std::vector<torch::Tensor> before;
    for (const torch::Tensor& buffer : job->model().buffers()) before.push_back(buffer.clone());
    (void)compile_step(*job, small_batch(), {.cache = folder.path(), .python = {}});
    std::vector<torch::Tensor> after = job->model().buffers();
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(torch::equal(before[i], after[i]));
    for (const torch::Tensor& parameter : job->model().parameters())
        EXPECT_FALSE(parameter.grad().defined());
}

TEST(CompiledStepTest, GraphGivesTheJobsLossAndGradientsAndIsKept) {
    std::string python = python_with_torch(SATURATE_SOURCE_DIR);
    if (python.empty()) GTEST_SKIP() << "no Python with PyTorch: tests/support/python_torch --make";
    TemporaryFolder folder;
    auto job = small_job();
    TensorBatch batch = small_batch();
    CompileSettings settings{.cache = folder.path(), .python = {python}, .when_faster_only = false};
    CompileOutcome built = compile_step(*job, batch, settings);
    ASSERT_NE(built.step, nullptr) << built.message;
    EXPECT_TRUE(built.step->accepts(batch));
    EXPECT_FALSE(built.step->accepts({batch[0].slice(0, 0, 8), batch[1].slice(0, 0, 8)}));

    settings.python = {};  // from the cache now
    CompileOutcome again = compile_step(*job, batch, settings);
    ASSERT_NE(again.step, nullptr) << again.message;

    // Weights that moved since: the graph reads them where they lie.
    {
        torch::NoGradGuard no_grad;
        for (torch::Tensor& parameter : job->model().parameters()) parameter.mul_(1.1);
    }
    auto other = small_job();
    for (std::size_t i = 0; i < other->model().parameters().size(); ++i) {
        torch::NoGradGuard no_grad;
        other->model().parameters()[i].copy_(job->model().parameters()[i]);
    }
    std::vector<torch::Tensor> gradients;
    torch::Tensor loss = again.step->run(batch, gradients);
    torch::Tensor expected = other->loss(batch);
    expected.backward();
    // Float32 sums of 16 x 32 terms in another order: a few 1e-7 of their size.
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-5);
    ASSERT_EQ(gradients.size(), other->model().parameters().size());
    for (std::size_t i = 0; i < gradients.size(); ++i)
        EXPECT_LT(largest_difference(gradients[i], other->model().parameters()[i].grad()), 1e-4)
            << i;
    for (std::size_t i = 0; i < other->model().buffers().size(); ++i) {
        EXPECT_LT(largest_difference(job->model().buffers()[i].to(torch::kFloat),
                                     other->model().buffers()[i].to(torch::kFloat)),
                  1e-5);
    }

    // Another batch size is another graph, and a torn package is none.
    TensorBatch smaller = {batch[0].slice(0, 0, 8), batch[1].slice(0, 0, 8)};
    EXPECT_EQ(compile_step(*job, smaller, settings).message,
              "compile: not compiled: no Python found");
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
        if (entry.path().extension() == ".pt2") std::ofstream(entry.path()) << "torn";
    }
    EXPECT_NE(compile_step(*job, batch, settings).message.find("cannot be loaded"),
              std::string::npos);
}

}  // namespace
}  // namespace saturate
