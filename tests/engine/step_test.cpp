// SPDX-License-Identifier: Apache-2.0
// The parts of a step against plain arithmetic: optimizers, schedule, accumulation, layout, memory.
#include "engine/step.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include <thread>

#include "engine/cpu_allocator.h"
#include "engine/lent_memory.h"
#include "engine/recompute.h"
#include "engine/schedule.h"
#include "engine/seed.h"
#include "engine/weight_mean.h"
#include "refusing_memory.h"
#include "small_job.h"

namespace saturate {
namespace {

// Ten steps on one number with gradient g_t = p_t, written out in double precision. float32 leaves
// about 1e-7 per step; ten steps and the bias corrections stay below 2e-6.
TEST(OptimizerTest, FollowsThePublishedFormulas) {
    constexpr double kRate = 0.1, kDecay = 0.05, kTolerance = 2e-6;
    for (bool fused : {true, false}) {
        for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd}) {
            torch::Tensor parameter = torch::full({3}, 2.0, torch::kFloat).requires_grad_(true);
            torch::Tensor other = torch::full({2}, 5.0, torch::kFloat).requires_grad_(true);
            Optimizer optimizer(
                {{"p", parameter}, {"unused", other}},
                {.kind = kind, .weight_decay = kDecay, .momentum = 0.9, .fused = fused});
            optimizer.set_learning_rate(kRate);
            double p = 2.0, m = 0, v = 0;
            for (int t = 1; t <= 10; ++t) {
                parameter.mutable_grad() = parameter.detach().clone();
                optimizer.step(std::nullopt);
                double g = p;
                if (kind == OptimizerKind::adamw) p -= kRate * kDecay * p;
                if (kind != OptimizerKind::adamw) g += kDecay * p;
                if (kind == OptimizerKind::sgd) {
                    m = t == 1 ? g : 0.9 * m + g;
                    p -= kRate * m;
                } else {
                    m = 0.9 * m + 0.1 * g;
                    v = 0.999 * v + 0.001 * g * g;
                    p -= kRate * (m / (1 - std::pow(0.9, t))) /
                         (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
                }
                EXPECT_NEAR(parameter[0].item<float>(), p, kTolerance) << t;
            }
            EXPECT_EQ(other[0].item<float>(), 5.0f);  // had no gradient
        }
    }
}

// A mean of gradients that fades below 1e-38 would slow every later step.
TEST(CpuBackendTest, NumbersTooSmallToBeFastAreZero) {
    auto backend = make_cpu_backend({.threads = 1}, false);
    torch::Tensor fading = torch::full({1 << 10}, 1e-37F);
    EXPECT_EQ(torch::count_nonzero(fading * 0.01F).item<std::int64_t>(), 0);
    EXPECT_EQ(torch::count_nonzero(fading * 0.5F).item<std::int64_t>(), 1 << 10);
}

TEST(OptimizerTest, SkippedStepChangesNothing) {
    torch::Tensor parameter = torch::ones({3}).requires_grad_(true);
    Optimizer optimizer({{"p", parameter}}, {});
    optimizer.set_learning_rate(0.1);
    parameter.mutable_grad() = torch::full({3}, std::numeric_limits<float>::infinity());
    optimizer.step(torch::ones({}));
    EXPECT_TRUE(torch::equal(parameter, torch::ones({3})));
    EXPECT_EQ(optimizer.state()[0].second.item<float>(), 0);
}

// Weights that a rank could not finish changing would differ from those of the others.
TEST(OptimizerTest, AnUpdateTakesNoMemory) {
    RefusingAllocator::install();
    for (bool fused : {true, false}) {
        for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd}) {
            torch::Tensor first = torch::ones({30, 20}).requires_grad_(true);
            torch::Tensor second = torch::ones({7}).requires_grad_(true);
            NamedTensors parameters{{"first", first}, {"second", second}};
            Optimizer optimizer(parameters, {.kind = kind, .weight_decay = 0.1, .fused = fused});
            WeightMean mean(parameters, 0.9);
            optimizer.set_learning_rate(0.1);
            first.mutable_grad() = torch::ones({30, 20});
            second.mutable_grad() = torch::ones({7});
            torch::Tensor found_infinite = torch::zeros({});
            for (int t = 0; t < 2; ++t) {
                NoMemory none;
                optimizer.step(std::nullopt);
                optimizer.step(found_infinite);
                mean.update();
            }
            EXPECT_EQ(optimizer.state()[0].second.item<float>(), 4);
            EXPECT_LT(second[0].item<float>(), 1);
        }
    }
    NoMemory none;
    EXPECT_THROW((void)torch::ones({3}), c10::OutOfMemoryError);
}

TEST(ScheduleTest, WarmsUpAndFalls) {
    Schedule cosine{.kind = ScheduleKind::cosine,
                    .highest = 1,
                    .least = 0.1,
                    .warmup_steps = 4,
                    .total_steps = 104};
    EXPECT_DOUBLE_EQ(cosine.at(0), 0.2);
    EXPECT_DOUBLE_EQ(cosine.at(3), 0.8);
    EXPECT_DOUBLE_EQ(cosine.at(4), 1);
    EXPECT_NEAR(cosine.at(54), 0.55, 1e-12);
    EXPECT_NEAR(cosine.at(104), 0.1, 1e-12);
    EXPECT_NEAR(cosine.at(1000), 0.1, 1e-12);
    Schedule drops{
        .kind = ScheduleKind::step, .highest = 1, .steps_per_drop = 10, .drop_factor = 0.5};
    EXPECT_DOUBLE_EQ(drops.at(9), 1);
    EXPECT_DOUBLE_EQ(drops.at(10), 0.5);
    EXPECT_DOUBLE_EQ(drops.at(20), 0.25);
    EXPECT_DOUBLE_EQ(Schedule{.highest = 0.3}.at(12345), 0.3);
}

TEST(ClipTest, ShortensLongGradientsOnly) {
    std::vector<torch::Tensor> gradients{torch::full({1}, 3.0), torch::full({1}, 4.0)};
    clip_gradients(gradients, 10);
    EXPECT_FLOAT_EQ(gradients[0].item<float>(), 3);
    clip_gradients(gradients, 1);  // length 5
    EXPECT_NEAR(gradients[0].item<float>(), 0.6, 1e-6);
    EXPECT_NEAR(gradients[1].item<float>(), 0.8, 1e-6);
}

TensorBatch small_batch(std::int64_t size) {
    return {torch::randn({size, 4}), torch::randn({size, 1})};
}

// One batch of 12, against 12 = 8 + 4, against 12 split in four: the same mean, so the same step
// but for the order of sums of 12 numbers around 1.
TEST(StepTest, AccumulationIsTheWholeBatch) {
    auto backend = make_cpu_backend({.threads = 1}, false);
    set_seed(3);
    TensorBatch batch = small_batch(12);
    std::vector<torch::Tensor> results;
    for (int way = 0; way < 3; ++way) {
        set_seed(5);
        SmallJob job;
        TrainingStep step(job, {.grad_clip = 0.5}, *backend);
        if (way == 2) step.set_split(4);
        std::vector<TensorBatch> batches{batch};
        if (way == 1) batches = {part_of(batch, 0, 8), part_of(batch, 8, 12)};
        for (int i = 0; i < 3; ++i) step.run(batches, 0.01);
        results.push_back(job.model().parameters()[0].detach().clone());
    }
    EXPECT_LT((results[1] - results[0]).abs().max().item<float>(), 2e-6);
    EXPECT_LT((results[2] - results[0]).abs().max().item<float>(), 2e-6);
}

TEST(StepTest, Bf16FollowsFp32) {
    auto backend = make_cpu_backend({.threads = 1}, false);
    set_seed(3);
    std::vector<TensorBatch> batch{small_batch(16)};
    std::vector<float> losses;
    for (Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
        set_seed(5);
        SmallJob job;
        TrainingStep step(job, {.precision = precision}, *backend);
        for (int i = 0; i < 20; ++i) step.run(batch, 0.01);
        losses.push_back(step.loss().item<float>());
    }
    // bf16 keeps 8 bits: 0.4 % per number, and the errors of 16 samples partly cancel.
    EXPECT_NEAR(losses[1], losses[0], 0.03 * losses[0]);
    // fp16 keeps 11, but the scaler may skip a first step while it finds its factor.
    EXPECT_NEAR(losses[2], losses[0], 0.03 * losses[0]);
}

TEST(LayoutTest, ChannelsLastAlsoWithOneChannel) {
    torch::Tensor grey = torch::randn({2, 1, 4, 6});
    torch::Tensor turned = as_channels_last(grey);
    EXPECT_EQ(turned.strides(), (std::vector<std::int64_t>{24, 1, 6, 1}));
    EXPECT_EQ(turned.data_ptr(), grey.data_ptr());
    torch::Tensor colour = torch::randn({2, 3, 4, 6});
    EXPECT_TRUE(torch::equal(as_channels_last(colour), colour));
    EXPECT_EQ(as_channels_last(colour).stride(1), 1);
}

TEST(RecomputeTest, GivesTheSameGradientsWithLessMemory) {
    auto backend = make_cpu_backend({.threads = 1}, false);
    std::vector<torch::Tensor> gradients;
    std::vector<std::uint64_t> peaks;
    for (bool on : {false, true}) {
        set_seed(0);
        std::vector<torch::nn::Conv2d> blocks;
        for (int i = 0; i < 6; ++i)
            blocks.push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 8, 3).padding(1)));
        torch::Tensor x = torch::randn({4, 8, 32, 32});
        set_seed(1);
        backend->reset_peak();
        torch::Tensor h = x;
        for (auto& block : blocks) {
            Block part = [&block](const torch::Tensor& in) {
                return torch::dropout(torch::gelu(torch::gelu(torch::gelu(block->forward(in)))),
                                      0.2, true);
            };
            h = on ? recomputed(part, h) : part(h);
        }
        h.square().mean().backward();
        for (auto& block : blocks) gradients.push_back(block->weight.grad().clone());
        peaks.push_back(backend->memory().peak_bytes);
    }
    for (std::size_t i = 0; i < 6; ++i) EXPECT_TRUE(torch::equal(gradients[i], gradients[i + 6]));
    EXPECT_LT(peaks[1], 0.6 * static_cast<double>(peaks[0]));
}

// Several steps under autocast: the second run must not leave cast weights behind, which the next
// forward pass would take for the weights of then; nor count a batch twice in the statistics.
TEST(RecomputeTest, FollowsTheWeightsInMixedPrecisionAndLeavesStatisticsAlone) {
    auto backend = make_cpu_backend({.threads = 1}, false);
    std::vector<std::vector<torch::Tensor>> ended;
    for (bool on : {false, true}) {
        set_seed(0);
        torch::nn::Conv2d conv(torch::nn::Conv2dOptions(4, 4, 3).padding(1));
        torch::nn::BatchNorm2d norm(4);
        torch::Tensor x = torch::randn({4, 4, 8, 8});
        for (int step = 0; step < 4; ++step) {
            torch::Tensor loss;
            {
                Autocast mixed(torch::kCPU, Precision::bf16);
                Block part = [&](const torch::Tensor& in) { return norm(conv(in)); };
                torch::Tensor h =
                    on ? recomputed(part, x, RandomNumbers::none, norm->buffers()) : part(x);
                loss = h.to(torch::kFloat).square().mean();
            }
            loss.backward();
            torch::NoGradGuard no_gradients;
            for (torch::Tensor parameter : {conv->weight, norm->weight}) {
                parameter -= 0.5 * parameter.grad();
                parameter.mutable_grad().reset();
            }
        }
        ended.push_back({conv->weight.detach().clone(), norm->running_mean.clone(),
                         norm->running_var.clone(), norm->num_batches_tracked.clone()});
    }
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(torch::allclose(ended[0][i], ended[1][i])) << i;
}

TEST(CpuAllocatorTest, GivesBlocksOutAgainAndCounts) {
    auto backend = make_cpu_backend({.threads = 1}, false);
    { torch::Tensor warm = torch::empty({3000}); }
    backend->reset_peak();
    CpuMemory before = cpu_memory();
    for (int i = 0; i < 100; ++i) torch::Tensor again = torch::empty({3000});
    CpuMemory after = cpu_memory();
    EXPECT_EQ(after.fresh_blocks, before.fresh_blocks);
    EXPECT_EQ(after.used_bytes, before.used_bytes);
    EXPECT_GE(after.peak_bytes - before.used_bytes, 12000);
    EXPECT_LE(after.peak_bytes - before.used_bytes, 12000 * 9 / 8 + 64);
}

TEST(CpuAllocatorTest, DataIsAlignedForEverySize) {
    auto backend = make_cpu_backend({.threads = 1}, false);
    for (std::int64_t bytes : {1, 63, 448, 449, 512, 4096, 100'000, 5'000'000, 40'000'000}) {
        torch::Tensor tensor = torch::zeros({bytes}, torch::kByte);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0u) << bytes;
    }
}

TEST(CpuAllocatorTest, LimitThrowsAndIsSurvived) {
    auto backend = make_cpu_backend({.threads = 1}, false);
    set_cpu_memory_limit(cpu_memory().used_bytes + (8 << 20));
    EXPECT_THROW(torch::empty({64 << 20}, torch::kByte), c10::OutOfMemoryError);
    std::int64_t used = cpu_memory().used_bytes;
    { torch::Tensor fits = torch::empty({1 << 20}, torch::kByte); }
    EXPECT_EQ(cpu_memory().used_bytes, used);
    set_cpu_memory_limit(0);
    release_cached_cpu_memory();
    EXPECT_EQ(cpu_memory().reserved_bytes, cpu_memory().used_bytes);
}

// On a lost device every call throws. The buffer here cannot be restored because its size changed.
TEST(RecomputeTest, AnErrorOnTheWayOutDoesNotEndTheProcess) {
    int runs = 0;
    torch::Tensor buffer = torch::zeros({2}), x = torch::ones({3}).requires_grad_(true);
    Block part = [&](const torch::Tensor& in) {
        if (++runs == 2) {
            buffer.resize_({5});
            throw std::runtime_error("the device is lost");
        }
        return in * 2;
    };
    torch::Tensor sum = recomputed(part, x, RandomNumbers::none, {buffer}).sum();
    EXPECT_THROW(sum.backward(), std::runtime_error);
}

// Half a swap could not be undone.
TEST(WeightMeanTest, SwappingTakesNoMemory) {
    RefusingAllocator::install();
    torch::Tensor large = torch::full({30, 20}, 1.0F), small = torch::full({}, 2.0F);
    torch::Tensor turned = torch::rand({2, 3, 4, 5}).contiguous(torch::MemoryFormat::ChannelsLast);
    torch::Tensor before = turned.clone();
    std::optional<WeightMean> mean;
    mean.emplace(NamedTensors{{"large", large}, {"small", small}, {"turned", turned}}, 0.5);
    large.fill_(3), small.fill_(4), turned.mul_(-1);
    {
        NoMemory none;
        MeanInPlace in_place(mean);
    }
    EXPECT_EQ(large[29][19].item<float>(), 3);
    MeanInPlace in_place(mean);
    EXPECT_EQ(large[29][19].item<float>(), 1);
    EXPECT_EQ(small.item<float>(), 2);
    EXPECT_TRUE(torch::equal(turned, before));
    EXPECT_TRUE(torch::equal(mean->state()[2].second, -before));
}

// As for the buffers above: the evaluation's own error is the one that is told.
TEST(WeightMeanTest, AnErrorOnTheWayOutDoesNotEndTheProcess) {
    std::optional<WeightMean> mean;
    mean.emplace(NamedTensors{{"a", torch::ones({2})}}, 0.5);
    auto evaluate = [&] {
        MeanInPlace in_place(mean);
        torch::Tensor kept = mean->state()[0].second;
        kept.resize_({5});
        throw std::runtime_error("the device is lost");
    };
    EXPECT_THROW(evaluate(), std::runtime_error);
}

// Memory that tells when it is freed.
torch::Tensor watched(std::vector<float>& numbers, bool& freed) {
    return torch::from_blob(
        numbers.data(), {static_cast<std::int64_t>(numbers.size())},
        [&freed](void*) { freed = true; }, torch::kFloat);
}

TEST(LentMemoryTest, IsFreedOnceTheDeviceHasPassedWhatReadIt) {
    std::vector<float> numbers{1, 2, 3};
    bool freed = false, passed = false;
    LentMemory memory;
    auto settle = [&] {
        memory.settle([&]() -> LentMemory::Mark { return {[&] { return passed; }, nullptr}; });
    };
    torch::Tensor batch = memory.lend(watched(numbers, freed));
    EXPECT_EQ(batch.data_ptr(), numbers.data());
    EXPECT_EQ(batch.sum().item<float>(), 6);
    settle();
    passed = true;
    settle();
    EXPECT_FALSE(freed);  // somebody holds it
    passed = false;
    std::thread([&] { batch.reset(); }).join();  // autograd's threads drop theirs, too
    EXPECT_FALSE(freed);
    settle();
    EXPECT_FALSE(freed);  // the device still reads it
    passed = true;
    settle();
    EXPECT_TRUE(freed);
}

// A lost device is asked nothing when memory is dropped; whoever asks it next is told.
TEST(LentMemoryTest, DroppingAsksNothingOfTheDevice) {
    std::vector<float> numbers{1};
    bool freed = false;
    {
        LentMemory memory;
        torch::Tensor batch = memory.lend(watched(numbers, freed));
        batch.reset();
        EXPECT_THROW(memory.settle([]() -> LentMemory::Mark { throw std::runtime_error("lost"); }),
                     std::runtime_error);
        batch = memory.lend(torch::ones({1}));
    }
    EXPECT_TRUE(freed);
}

// The oldest marks only: behind the last two the device always has work.
TEST(LentMemoryTest, WaitsWhileTooMuchIsBehindItsMarks) {
    LentMemory memory;
    std::vector<int> waited_for;
    for (int mark = 0; mark < 4; ++mark) {
        (void)memory.lend(torch::ones({256}));
        memory.settle([&]() -> LentMemory::Mark {
            return {[] { return false; }, [&, mark] { waited_for.push_back(mark); }};
        });
    }
    EXPECT_FALSE(memory.wait_for_more_than(4096));
    EXPECT_TRUE(memory.wait_for_more_than(4095));
    EXPECT_EQ(waited_for, std::vector<int>{0});
    EXPECT_FALSE(memory.wait_for_more_than(3072));
    EXPECT_TRUE(memory.wait_for_more_than(0));
    EXPECT_EQ(waited_for, (std::vector<int>{0, 1}));
    EXPECT_FALSE(memory.wait_for_more_than(0));
}

TEST(LentMemoryTest, KeepsItsLayout) {
    LentMemory memory;
    torch::Tensor given = torch::arange(24).view({2, 3, 4}).transpose(1, 2);
    EXPECT_TRUE(torch::equal(memory.lend(given), given));
}

}  // namespace
}  // namespace saturate
