// SPDX-License-Identifier: Apache-2.0
#include "engine/reducer.h"

#include <gmock/gmock.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "engine/step.h"
#include "ranks.h"
#include "refusing_memory.h"

namespace saturate {
namespace {

struct Net : torch::nn::Module {
    Net()
        : conv(register_module("conv",
                               torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)))),
          wide(register_module("wide", torch::nn::Linear(8 * 36, 64))),
          idle(register_module("idle", torch::nn::Linear(5, 5))),
          last(register_module("last", torch::nn::Linear(64, 4))) {}
    torch::Tensor forward(const torch::Tensor& x) {
        return last(torch::relu(wide(torch::relu(conv(x)).flatten(1))));
    }
    torch::nn::Conv2d conv;
    torch::nn::Linear wide, idle, last;
};

NamedTensors named(Net& net) {
    NamedTensors out;
    for (const auto& item : net.named_parameters()) out.emplace_back(item.key(), item.value());
    return out;
}

std::shared_ptr<Net> same_net() {
    auto net = std::make_shared<Net>();
    torch::NoGradGuard no_gradients;
    std::int64_t i = 0;
    for (torch::Tensor& parameter : net->parameters()) {
        torch::Tensor values = torch::arange(parameter.numel(), torch::kFloat);
        parameter.copy_(((values + i++).sin() * 0.1).view(parameter.sizes()));
    }
    return net;
}

torch::Tensor inputs(std::int64_t samples) {
    return (torch::arange(samples * 3 * 36, torch::kFloat) * 0.37).sin().view({samples, 3, 6, 6});
}

torch::Tensor loss_of(Net& net, const torch::Tensor& x) { return net.forward(x).square().mean(); }

// Gradients of the union batch, by name; undefined for what is not part of the loss.
std::vector<torch::Tensor> union_gradients(std::int64_t samples) {
    auto net = same_net();
    loss_of(*net, inputs(samples)).backward();
    std::vector<torch::Tensor> out;
    for (const torch::Tensor& parameter : net->parameters()) out.push_back(parameter.grad());
    return out;
}

void expect_equal(const std::vector<torch::Tensor>& parameters,
                  const std::vector<torch::Tensor>& expected, double tolerance) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(parameters[i].grad().defined(), expected[i].defined()) << i;
        if (!expected[i].defined()) continue;
        EXPECT_EQ(parameters[i].grad().strides(), parameters[i].strides());
        double scale = expected[i].abs().max().item<double>();
        double apart = (parameters[i].grad() - expected[i]).abs().max().item<double>();
        EXPECT_LE(apart, tolerance * scale) << i;
    }
}

// The sums of 8 samples in another order: a few roundings of 6e-8 each, relative to the largest
// entry; 1e-5 leaves room for the cancellation in a mean of 288 products.
constexpr double kTolerance = 1e-5;

class ReducerTest : public testing::Test {
  protected:
    // One step of 8 samples over all ranks, in `parts` micro-batches, checked on every rank.
    static void step(ProcessGroup& group, const ReducerSettings& settings, int parts,
                     double tolerance, bool channels_last = false) {
        auto net = same_net();
        if (channels_last) {
            torch::NoGradGuard no_gradients;
            net->conv->weight.set_data(as_channels_last(net->conv->weight.detach()));
        }
        GradientReducer reducer(group, named(*net), {}, settings);
        std::int64_t each = 8 / group.count();
        torch::Tensor mine = inputs(8).narrow(0, group.rank() * each, each);
        for (int turn = 0; turn < 3; ++turn) {
            for (torch::Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
            std::vector<torch::Tensor> pieces = mine.chunk(parts);
            for (std::size_t i = 0; i < pieces.size(); ++i) {
                if (i + 1 == pieces.size()) reducer.begin();
                (loss_of(*net, pieces[i]) / (parts * group.count())).backward();
            }
            ReducerAnswer answer = reducer.finish(false, {});
            EXPECT_FALSE(answer.any_failed);
            EXPECT_GT(answer.total_ns, 0);
            EXPECT_GE(answer.total_ns, answer.exposed_ns);
            std::size_t buckets = divide_into_buckets(named(*net), settings).size();
            EXPECT_EQ(answer.collectives, static_cast<std::int64_t>(buckets) + 1);
            std::int64_t bytes = 0;
            for (const torch::Tensor& parameter : net->parameters())
                bytes += parameter.numel() * (settings.compress ? 2 : 4);
            EXPECT_EQ(answer.bytes, bytes + 4 * 4);  // and four flags
            expect_equal(net->parameters(), union_gradients(8), tolerance);
            EXPECT_EQ(reducer.take_note(), turn > 0
                                               ? ""
                                               : "no gradient for idle.weight, idle.bias: it is "
                                                 "not part of the loss and stays unchanged");
        }
    }
};

TEST_F(ReducerTest, GradientsEqualThoseOfTheUnionBatch) {
    for (int ranks : {2, 4}) {
        for (std::int64_t bytes : {1 << 22, 1 << 12, 1}) {
            expect_together(ranks, [bytes](ProcessGroup& group) {
                step(group, {.bucket_bytes = bytes, .first_bucket_bytes = bytes / 2}, 1,
                     kTolerance);
            });
        }
    }
}

TEST_F(ReducerTest, AccumulatedGradientsAreSentOnce) {
    expect_together(2, [](ProcessGroup& group) { step(group, {}, 2, kTolerance); });
}

TEST_F(ReducerTest, GradientsLieAsTheirParameters) {
    expect_together(2, [](ProcessGroup& group) { step(group, {}, 1, kTolerance, true); });
}

// bf16 has 8 bits: each rank's gradient is off by up to 2^-9 of itself, and so is the sum.
TEST_F(ReducerTest, CompressedGradientsAreThoseOfTheUnionInBf16) {
    expect_together(2, [](ProcessGroup& group) { step(group, {.compress = true}, 1, 1.0 / 64); });
}

TEST_F(ReducerTest, AllLearnThatOneRankHasNoMemoryAndGoOn) {
    expect_together(2, [](ProcessGroup& group) {
        auto net = same_net();
        GradientReducer reducer(group, named(*net), {}, {.bucket_bytes = 1 << 12});
        torch::Tensor mine = inputs(8).narrow(0, group.rank() * 4, 4);
        for (int turn = 0; turn < 3; ++turn) {
            for (torch::Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
            // Turn 0: rank 1 fails before its last micro-batch, turn 1: in the middle of it.
            bool fails = group.rank() == 1 && turn < 2;
            if (!fails || turn == 1) reducer.begin();
            if (!fails) (loss_of(*net, mine) / 2).backward();
            ReducerAnswer answer = reducer.finish(fails, {});
            EXPECT_EQ(answer.any_failed, turn < 2);
            if (turn == 2) expect_equal(net->parameters(), union_gradients(8), kTolerance);
        }
    });
}

TEST_F(ReducerTest, AllLearnThatOneRankHasNoMemoryForTheUpdate) {
    expect_together(3, [](ProcessGroup& group) {
        auto net = same_net();
        GradientReducer reducer(group, named(*net), {}, {});
        EXPECT_FALSE(reducer.any_failed(false));
        EXPECT_TRUE(reducer.any_failed(group.rank() == 2));
        EXPECT_FALSE(reducer.any_failed(false));
    });
}

// What failed between two collectives would leave the others waiting in one that never comes.
TEST_F(ReducerTest, FinishingAStepTakesNoMemory) {
    RefusingAllocator::install();
    expect_together(2, [](ProcessGroup& group) {
        auto net = same_net();
        torch::Tensor mean = torch::full({3}, static_cast<double>(group.rank()));
        GradientReducer reducer(group, named(*net), {mean}, {.bucket_bytes = 1 << 12});
        for (int turn = 0; turn < 3; ++turn) {
            for (torch::Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
            torch::Tensor loss = loss_of(*net, inputs(2)) / 2;
            reducer.begin();
            loss.backward();
            NoMemory none;
            EXPECT_FALSE(reducer.finish(false, {}).any_failed);
            EXPECT_FALSE(reducer.any_failed(false));
        }
    });
}

TEST(BucketsTest, AreFilledFromTheLastParameterOn) {
    NamedTensors parameters;
    for (std::int64_t size : {100, 10, 60, 60, 2, 200})
        parameters.emplace_back("", torch::zeros({size}));
    parameters.emplace_back("", torch::zeros({4}, torch::kDouble));
    using Buckets = std::vector<std::vector<std::size_t>>;
    // A first bucket of its own limit; a parameter that is too large; no mix of types.
    EXPECT_EQ(divide_into_buckets(parameters, {.bucket_bytes = 500, .first_bucket_bytes = 64}),
              (Buckets{{6}, {5}, {4, 3, 2}, {1, 0}}));
    EXPECT_TRUE(divide_into_buckets({}, {}).empty());
}

TEST_F(ReducerTest, AWishOfOneRankReachesAll) {
    expect_together(2, [](ProcessGroup& group) {
        auto net = same_net();
        GradientReducer reducer(group, named(*net), {}, {});
        for (int turn = 0; turn < 2; ++turn) {
            reducer.begin();
            loss_of(*net, inputs(2)).backward();
            StopWish wish{.interrupted = turn == 1 && group.rank() == 1};
            EXPECT_EQ(reducer.finish(false, wish).stop.interrupted, turn == 1);
        }
    });
}

TEST_F(ReducerTest, BuffersFollowTheFirstRank) {
    expect_together(2, [](ProcessGroup& group) {
        auto net = same_net();
        torch::Tensor mean = torch::full({3}, static_cast<double>(group.rank()));
        torch::Tensor seen = torch::full({1}, group.rank() + 5, torch::kLong);
        GradientReducer reducer(group, named(*net), {mean, seen}, {});
        reducer.begin();
        loss_of(*net, inputs(2)).backward();
        (void)reducer.finish(false, {});
        EXPECT_EQ(mean.sum().item<double>(), 0);
        EXPECT_EQ(seen.item<std::int64_t>(), 5);
    });
}

}  // namespace
}  // namespace saturate
