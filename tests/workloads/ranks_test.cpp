// SPDX-License-Identifier: Apache-2.0
// Every job on 2 and 4 ranks (threads here): gradients and loss are those of one process on the
// union batch.
#include "engine/ranks.h"

#include <gtest/gtest.h>

#include <mutex>

#include "engine/step.h"
#include "workloads/classifier.h"
#include "workloads/locator.h"
#include "workloads/restoration.h"
#include "workloads/sequence.h"
#include "workloads/window_cnn.h"

namespace saturate {
namespace {

struct RanksCase {
    std::string name;
    std::function<std::unique_ptr<Job>()> make;
    std::function<TensorBatch()> batch;
};

void PrintTo(const RanksCase& one, std::ostream* out) { *out << one.name; }

// Each part of the union batch goes through the same kernels on both sides. What differs is the
// order in which 2 or 4 gradients are added, a rounding of 6e-8 each, relative to the largest entry
// of a tensor, or to a thousandth of the model's largest: a bias before a normalisation has no
// gradient but noise.
constexpr double kUnionTolerance = 1e-6;
// A model without normalisation may also see the union in one piece: sums over the samples are then
// made inside the kernels, in blocks of another size.
constexpr double kToleranceOnePiece = 1e-4;

std::vector<torch::Tensor> gradients_of(Job& job) {
    std::vector<torch::Tensor> out;
    for (const torch::Tensor& parameter : job.model().parameters())
        out.push_back(parameter.grad().defined() ? parameter.grad().clone() : torch::Tensor());
    return out;
}

void expect_close(const std::vector<torch::Tensor>& found,
                  const std::vector<torch::Tensor>& expected, double tolerance) {
    double largest = 0;
    for (const torch::Tensor& one : expected) {
        if (one.defined()) largest = std::max(largest, one.abs().max().item<double>());
    }
    ASSERT_GT(largest, 0);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(found[i].defined(), expected[i].defined()) << i;
        if (!expected[i].defined()) continue;
        double scale = std::max(expected[i].abs().max().item<double>(), largest / 1000);
        EXPECT_LE((found[i] - expected[i]).abs().max().item<double>(), tolerance * scale) << i;
    }
}

void copy_weights(Job& from, Job& to) {
    torch::NoGradGuard no_gradients;
    auto pair = [](const auto& a, const auto& b) {
        for (std::size_t i = 0; i < a.size(); ++i) b[i].copy_(a[i]);
    };
    pair(from.model().parameters(), to.model().parameters());
    pair(from.model().buffers(), to.model().buffers());
}

class JobRanksTest : public testing::TestWithParam<RanksCase> {};

TEST_P(JobRanksTest, GradientsAndLossAreThoseOfTheUnionBatch) {
    const RanksCase& one = GetParam();
    constexpr double kRate = 0;  // weights stay, gradients remain to be looked at
    auto backend = make_cpu_backend({.threads = 1}, false);
    for (int count : {2, 4}) {
        torch::manual_seed(7);
        std::unique_ptr<Job> start = one.make(), job = one.make();
        std::vector<TensorBatch> parts;
        for (int i = 0; i < count; ++i) parts.push_back(one.batch());
        copy_weights(*start, *job);
        TrainingStep alone(*job, {}, *backend);
        alone.run(parts, kRate);
        std::vector<torch::Tensor> expected = gradients_of(*job);
        double loss = alone.loss().item<double>();

        std::mutex mutex;
        double mean = 0;
        expect_together(count, [&](ProcessGroup& group) {
            std::unique_ptr<Job> own;
            {
                std::lock_guard lock(mutex);
                own = one.make();
                copy_weights(*start, *own);
            }
            TrainingStep step(*own, {}, *backend);
            GradientReducer reducer(group, step.parameters(), own->model().buffers(),
                                    {.bucket_bytes = 1 << 14, .first_bucket_bytes = 1 << 12});
            step.set_reducer(&reducer);
            step.run({&parts[static_cast<std::size_t>(group.rank())], 1}, kRate);
            std::lock_guard lock(mutex);
            expect_close(gradients_of(*own), expected, kUnionTolerance);
            mean += step.loss().item<double>() / count;
        });
        EXPECT_NEAR(mean, loss, kUnionTolerance * std::abs(loss));

        if (!start->model().buffers().empty()) continue;  // statistics of a part are its own
        TensorBatch whole;
        for (std::size_t field = 0; field < parts[0].size(); ++field) {
            std::vector<torch::Tensor> pieces;
            for (const TensorBatch& part : parts) pieces.push_back(part[field]);
            whole.push_back(torch::cat(pieces));
        }
        copy_weights(*start, *job);
        alone.run({&whole, 1}, kRate);
        expect_close(gradients_of(*job), expected, kToleranceOnePiece);
    }
}

std::vector<RanksCase> ranks_cases() {
    return {
        {"restoration",
         [] {
             return restoration_job({.shape = {8, 2}}, {});
         },
         [] {
             torch::Tensor target = torch::rand({2, 3, 24, 24});
             return TensorBatch{target * 0.8 + 0.1 * torch::rand({2, 3, 24, 24}), target};
         }},
        {"locator", [] { return locator_job(8, {}); },
         [] {
             torch::Tensor scale = torch::tensor({64.0f, 64.0f, 64.0f, 64.0f});
             return TensorBatch{torch::rand({4, 3, 64, 64}), torch::rand({4, 4}) * scale};
         }},
        {"classifier", [] { return classifier_job({.base_channels = 8, .num_classes = 4}, {}); },
         [] {
             return TensorBatch{torch::randn({8, 1, 32, 32}), torch::randint(4, {8}, torch::kLong)};
         }},
        {"sequence",
         [] { return sequence_job({.num_features = 4, .hidden_size = 12, .num_layers = 2}, {}); },
         [] {
             torch::Tensor window = torch::randn({16, 10, 4});
             return TensorBatch{window, window.select(1, -1).sum(1, true) + 1};
         }},
        {"window_cnn",
         [] {
             return window_cnn_job({.window_size = 12, .num_features = 8, .base_channels = 8}, {});
         },
         [] {
             torch::Tensor window = torch::randn({16, 1, 12, 8});
             return TensorBatch{window, window.select(2, -1).sum(2) + 1};
         }},
    };
}

INSTANTIATE_TEST_SUITE_P(Jobs, JobRanksTest, testing::ValuesIn(ranks_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace saturate
