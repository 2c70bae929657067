// SPDX-License-Identifier: Apache-2.0
// The trainer on several ranks, which are threads here: what they do together equals what one
// process does with the union of their batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "engine/random_state.h"
#include "engine/rank_team.h"
#include "engine/seed.h"
#include "engine/trainer.h"
#include "ranks.h"
#include "refusing_memory.h"
#include "small_job.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;

struct RankRun {
    TrainResult result;
    MemoryRecorder recorder;
    ListeningObserver observer;
    std::vector<float> weights;
    int refused = 0;  // blocks of memory

    [[nodiscard]] std::int64_t count(EventKind kind) const {
        return std::ranges::count(recorder.events, kind, &EventRecord::kind);
    }
    [[nodiscard]] std::vector<double> losses() const {
        std::vector<double> out;
        for (const StepRecord& step : recorder.steps) {
            if (step.loss) out.push_back(*step.loss);
        }
        return out;
    }
};

struct Wish {
    SmallJobSettings job = {};
    TrainSettings train = small_settings();
    TrainPlaces places = {};
    bool resume = false;
    std::int64_t stop_after = -1;  // of the last rank
    int odd_rank = -1;             // one rank's own ...
    std::int64_t odd_size = 0;     // ... number of samples
    std::int64_t odd_heavy = 0;    // ... need of memory
    std::int64_t refuse_at = -1;   // ... loss after which a block is refused, once, ...
    std::size_t refuse_bytes = 0;  // ... of this size
    std::int64_t fail_at = -1;     // ... loss that throws
    bool odd_places = false;       // ... folder of checkpoints, below that of the others
    std::vector<std::vector<double>> own_sums = {};  // per rank
};

// Models are made one after the other: the generator is the process's, not the rank's.
std::unique_ptr<RankRun> train_rank(const Wish& wish, ProcessGroup* group) {
    static std::mutex making;
    auto run = std::make_unique<RankRun>();
    int rank = group ? group->rank() : 0, count = group ? group->count() : 1;
    if (rank == count - 1) run->observer.stop_after = wish.stop_after;
    auto backend = make_cpu_backend(wish.train.device, false);
    SmallJobSettings settings = wish.job;
    if (rank == wish.odd_rank && wish.odd_size > 0) settings.size = wish.odd_size;
    if (rank == wish.odd_rank) settings.heavy = wish.odd_heavy;
    if (rank == wish.odd_rank && wish.refuse_at >= 0) {
        settings.at_loss = [&wish](std::int64_t losses) {
            if (losses == wish.refuse_at) refusal().bytes = wish.refuse_bytes;
        };
    }
    if (rank == wish.odd_rank && wish.fail_at >= 0) {
        settings.at_loss = [&wish](std::int64_t losses) {
            if (losses == wish.fail_at) throw std::runtime_error("this rank ends here");
        };
    }
    TrainPlaces places = wish.places;
    if (rank == wish.odd_rank && wish.odd_places) places.checkpoints /= "elsewhere";
    if (!wish.own_sums.empty())
        settings.own_sums = wish.own_sums.at(static_cast<std::size_t>(rank));
    std::unique_ptr<SmallJob> job;
    {
        std::lock_guard lock(making);
        set_seed(7 + static_cast<std::uint64_t>(rank));  // rank 0's weights count
        job = std::make_unique<SmallJob>(settings);
    }
    Trainer trainer(*job, wish.train, places, *backend, run->observer, group);
    if (wish.resume && rank == 0) {
        auto found = find_checkpoint(wish.places.checkpoints);
        EXPECT_TRUE(found);
        trainer.restore(*found);
    }
    run->result = trainer.run(run->recorder);
    run->refused = refusal().count;
    for (const torch::Tensor& parameter : job->model().parameters()) {
        torch::Tensor flat = parameter.detach().flatten();
        const float* first = flat.const_data_ptr<float>();
        run->weights.insert(run->weights.end(), first, first + flat.numel());
    }
    return run;
}

std::vector<std::unique_ptr<RankRun>> train_ranks(int count, const Wish& wish,
                                                  RankTimes times = {}) {
    std::vector<std::unique_ptr<RankRun>> out(static_cast<std::size_t>(count));
    std::vector<std::string> said = on_ranks(
        count,
        [&](ProcessGroup& group) {
            out[static_cast<std::size_t>(group.rank())] = train_rank(wish, &group);
        },
        times);
    for (const std::string& text : said) EXPECT_EQ(text, "");
    return out;
}

// One rank's share of the union batch, and the settings of one process for the same steps.
Wish of_one_process(Wish wish, int ranks) {
    wish.train.batch_size *= ranks;
    return wish;
}

// 32 steps of AdamW at 0.01 whose gradients differ by the order of a dozen sums (1e-7 each,
// relative): the normalised step of AdamW keeps the difference relative, and it adds up.
constexpr double kRanksTolerance = 1e-4;

TEST(TrainerRanksTest, TwoAndFourRanksEqualOneProcessOnTheUnionBatch) {
    for (int count : {2, 4}) {
        Wish wish;
        wish.job.size = 64;
        wish.train.batch_size = 16 / count;
        wish.train.log_interval = 1;
        wish.train.check_ranks = 3;
        std::unique_ptr<RankRun> one = train_rank(of_one_process(wish, count), nullptr);
        auto ranks = train_ranks(count, wish);
        std::vector<double> expected = one->losses();
        for (const auto& run : ranks) {
            EXPECT_EQ(run->result.ended, "done");
            std::vector<double> losses = run->losses();
            ASSERT_EQ(losses.size(), expected.size());
            for (std::size_t i = 0; i < losses.size(); ++i)
                EXPECT_NEAR(losses[i], expected[i], kRanksTolerance * std::abs(expected[i])) << i;
            EXPECT_NEAR(*run->result.metric, *one->result.metric,
                        kRanksTolerance * *one->result.metric);
            ASSERT_EQ(run->weights, ranks[0]->weights);  // bit by bit
            ASSERT_EQ(run->weights.size(), one->weights.size());
            for (std::size_t i = 0; i < one->weights.size(); ++i)
                EXPECT_NEAR(run->weights[i], one->weights[i], kRanksTolerance);
            const StepRecord& last = run->recorder.steps.back();
            ASSERT_TRUE(last.communication_ns && last.communication_total_ns);
            EXPECT_GE(*last.communication_total_ns, *last.communication_ns);
            EXPECT_EQ(last.collectives, 2);  // one bucket, and the flags
            EXPECT_EQ(last.communication_bytes, 4 * (4 * 8 + 8 + 8 + 1) + 4 * 4);
        }
    }
}

TEST(TrainerRanksTest, AccumulationAndClippingEqualOneProcess) {
    Wish wish;
    wish.job.size = 64;
    wish.train.batch_size = 4;
    wish.train.accumulation = 2;
    wish.train.step.grad_clip = 0.1;
    wish.train.ema = 0.9;
    wish.train.log_interval = 1;
    auto one = train_rank(of_one_process(wish, 2), nullptr);
    auto ranks = train_ranks(2, wish);
    ASSERT_EQ(ranks[1]->losses().size(), one->losses().size());
    EXPECT_NEAR(ranks[1]->losses().back(), one->losses().back(),
                kRanksTolerance * one->losses().back());
    EXPECT_NEAR(*ranks[1]->result.metric, *one->result.metric,
                kRanksTolerance * *one->result.metric);
}

TEST(TrainerRanksTest, EveryValidationSampleCountsOnce) {
    Wish wish;  // 16 validation samples on 3 ranks: 5, 5 and 6
    wish.job.size = 48;
    wish.train.epochs = 1;
    auto ranks = train_ranks(3, wish);
    for (const auto& run : ranks) {
        EXPECT_EQ(*run->result.metric, *ranks[0]->result.metric);
        auto evaluation =
            std::ranges::find(run->recorder.events, EventKind::evaluation, &EventRecord::kind);
        ASSERT_NE(evaluation, run->recorder.events.end());
        EXPECT_EQ(evaluation->values["samples"].integer(), 16);
    }
}

TEST(TrainerRanksTest, AllStopWhenOneIsAsked) {
    TemporaryFolder folder;
    Wish wish;
    wish.stop_after = 3;
    wish.places.checkpoints = folder.path() / "checkpoints";
    auto ranks = train_ranks(2, wish);
    for (const auto& run : ranks) {
        EXPECT_EQ(run->result.ended, "interrupted");
        EXPECT_EQ(run->recorder.steps.size(), 4u);  // told with the fourth step
    }
    EXPECT_EQ(list_checkpoints(wish.places.checkpoints).size(), 1u);
}

TEST(TrainerRanksTest, AllHalveTheMicroBatchTogether) {
    Wish wish;
    wish.odd_rank = 1;
    wish.odd_heavy = 1 << 18;  // 1 MiB per sample, on rank 1 only
    wish.train.epochs = 1;
    wish.train.eval_epochs = 0;
    wish.train.device.memory_limit_bytes = 8 << 20;
    auto ranks = train_ranks(2, wish);
    for (const auto& run : ranks) {
        EXPECT_EQ(run->result.ended, "done");
        EXPECT_EQ(run->weights, ranks[0]->weights);
        EXPECT_EQ(run->count(EventKind::out_of_memory), ranks[0]->count(EventKind::out_of_memory));
        EXPECT_GE(run->count(EventKind::out_of_memory), 1);
    }
}

// The lengths of 4 gradients, 16 bytes, are what clipping joins, and no other part of the step has
// a block of that size.
TEST(TrainerRanksTest, AllRepeatAStepWhoseUpdateHadNoMemoryOnOne) {
    RefusingAllocator::install();
    Wish wish;
    wish.odd_rank = 1;
    wish.refuse_bytes = 16;
    wish.train.eval_epochs = 0;
    wish.train.log_interval = 7;  // losses of 28 bytes
    for (double clip : {0.1, 0.0}) {
        wish.train.step.grad_clip = clip;
        wish.refuse_at = -1;
        auto whole = train_ranks(2, wish);
        wish.refuse_at = 5;
        auto ranks = train_ranks(2, wish);
        int expected = clip > 0 ? 1 : 0;  // without clipping an update takes no memory
        EXPECT_EQ(ranks[0]->refused, 0);
        EXPECT_EQ(ranks[1]->refused, expected);
        for (const auto& run : ranks) {
            EXPECT_EQ(run->result.ended, "done");
            EXPECT_EQ(run->count(EventKind::out_of_memory), expected);
            EXPECT_EQ(run->recorder.steps.size(), whole[0]->recorder.steps.size());
            EXPECT_EQ(run->weights, ranks[0]->weights);
            // Two micro-batches of 4 instead of one of 8, from step 5 on.
            for (std::size_t i = 0; i < run->weights.size(); ++i)
                EXPECT_NEAR(run->weights[i], whole[0]->weights[i], kRanksTolerance);
        }
        if (expected == 0) continue;
        auto said = [](const RankRun& run) {
            return std::ranges::find(run.recorder.events, EventKind::out_of_memory,
                                     &EventRecord::kind)
                ->values["said"]
                .string();
        };
        EXPECT_EQ(said(*ranks[0]), "on another rank, which its log names");
        EXPECT_EQ(said(*ranks[1]), "refused by the test");
    }
}

// Rank 0's own part gets worse from the start and rank 1's never does: only together they are
// 12, 11, 10, 10, 10.
TEST(TrainerRanksTest, EarlyStoppingGoesByTheMetricOfAllRanks) {
    Wish wish;
    wish.own_sums = {{4, 5, 6, 7, 8, 9}, {8, 6, 4, 3, 2, 1}};
    wish.train.epochs = 50;
    wish.train.early_stopping = 2;
    for (const auto& run : train_ranks(2, wish)) {
        EXPECT_EQ(run->result.ended, "done");
        EXPECT_EQ(run->result.why, "no better error in 2 evaluations");
        EXPECT_EQ(run->result.metric_best, 10);
        EXPECT_EQ(run->result.best_step, 3 * 4);
        EXPECT_EQ(run->recorder.steps.size(), 5u * 4);  // 64 samples, 8 on each of 2 ranks
    }
}

TEST(TrainerRanksTest, ParametersWithoutAGradientAreNamedOnce) {
    Wish wish;
    wish.job.has_idle = true;
    wish.train.epochs = 1;
    for (const auto& run : train_ranks(2, wish)) {
        const char* line =
            "no gradient for idle.weight, idle.bias: it is not part of the loss and stays "
            "unchanged";
        EXPECT_EQ(run->result.ended, "done");
        EXPECT_EQ(std::ranges::count(run->observer.said, line), 1);
        EXPECT_EQ(std::ranges::count(run->recorder.events, line, &EventRecord::text), 1);
    }
}

TEST(TrainerRanksTest, ALossThatIsNoNumberEndsAllAndNamesTheSamples) {
    Wish wish;
    wish.job.nan_sample = 5;
    wish.train.log_interval = 1;
    auto ranks = train_ranks(2, wish);
    for (const auto& run : ranks) {
        EXPECT_EQ(run->result.ended, "failed");
        ASSERT_TRUE(run->result.problem);
        EXPECT_EQ(run->result.problem->found, ranks[0]->result.problem->found);
        EXPECT_THAT(run->result.problem->found, HasSubstr(" is nan: batch "));
        EXPECT_THAT(run->result.problem->found, HasSubstr(" (rank "));
    }
}

TEST(TrainerRanksTest, ARankWithOtherDataIsNamedAtTheStart) {
    Wish wish;
    wish.odd_rank = 1;
    wish.odd_size = 60;
    auto ranks = train_ranks(3, wish);
    for (const auto& run : ranks) {
        EXPECT_EQ(run->result.ended, "failed");
        EXPECT_EQ(run->result.problem->text(),
                  "error: training samples: 60 on rank 1, and 64 on rank 0\n"
                  "  expected: the same data and settings on all ranks\n"
                  "  fix:      the same configuration and the same files on all hosts");
        EXPECT_TRUE(run->recorder.steps.empty());
    }
}

// NCCL would wait for ranks without it for ever, and refuses a GPU that is there twice.
TEST(TrainerRanksTest, EachRankHasADeviceOfItsOwnAndOfTheSameKind) {
    auto said = [](const std::vector<RankDevice>& devices) {
        std::vector<std::string> texts =
            on_ranks(static_cast<int>(devices.size()), [&](ProcessGroup& group) {
                compare_devices(group, devices.at(static_cast<std::size_t>(group.rank())));
            });
        for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
        return texts[0];
    };
    EXPECT_EQ(said({{"cuda", "a", "0000:65:00.0"},
                    {"cuda", "a", "0000:66:00.0"},
                    {"cuda", "b", "0000:65:00.0"}}),
              "");
    EXPECT_EQ(said({{"cpu", "a", ""}, {"cpu", "a", ""}}), "");
    EXPECT_EQ(said({{"cuda", "a", ""}, {"cuda", "a", ""}}), "");
    EXPECT_EQ(said({{"cuda", "a", "0000:65:00.0"}, {"cuda", "a", "0000:65:00.0"}}),
              "error: ranks 0 and 1 have the same GPU (0000:65:00.0)\n"
              "  expected: a GPU for each process\n"
              "  fix:      fewer processes on this host (--nproc), or other CUDA_VISIBLE_DEVICES "
              "for each");
    EXPECT_EQ(said({{"cuda", "a", "0000:65:00.0"}, {"cpu", "b", ""}}),
              "error: rank 1 trains on cpu, and rank 0 on cuda\n"
              "  expected: the same kind of device on all ranks\n"
              "  fix:      --device cuda makes each rank say what is missing");
}

TEST(TrainerRanksTest, ABatchMustFitTheShareOfEachRank) {
    Wish wish;
    wish.train.batch_size = 40;
    for (const std::string& text :
         on_ranks(2, [&](ProcessGroup& g) { (void)train_rank(wish, &g); })) {
        EXPECT_EQ(text,
                  "error: batch_size is 40 on each of 2 ranks, and the training data has 64 "
                  "samples\n"
                  "  expected: 1 to 32\n"
                  "  fix:      batch_size: 32");
    }
}

// A rank that is lost while the others do something else than a step.
class LostRankTest : public testing::Test {
  protected:
    LostRankTest() {
        RefusingAllocator::install();
        wish_.job.size = 1024;
        wish_.train.log_interval = 7;  // losses of 28 bytes
        wish_.train.eval_epochs = 0;
        wish_.places.checkpoints = folder_.path() / "checkpoints";
        wish_.odd_rank = 1;
    }
    // Trains on two ranks, and returns the run of the one that is left.
    [[nodiscard]] std::unique_ptr<RankRun> left() const {
        auto ranks = train_ranks(2, wish_);
        auto lost = static_cast<std::size_t>(wish_.odd_rank);
        EXPECT_EQ(ranks[lost]->result.ended, "failed");
        std::unique_ptr<RankRun> run = std::move(ranks[1 - lost]);
        EXPECT_EQ(run->result.ended, "failed");
        EXPECT_THAT(run->result.problem->found,
                    HasSubstr("rank " + std::to_string(lost) + " of 2 is lost: "));
        return run;
    }
    [[nodiscard]] std::vector<std::string> kept() const {
        std::vector<std::string> out;
        for (const auto& path : list_checkpoints(wish_.places.checkpoints))
            out.push_back(path.filename());
        return out;
    }

    TemporaryFolder folder_;
    Wish wish_;
};

using testing::ElementsAre;

// Steps of the checkpoint are steps of the record: a run that resumes adds what is missing.
TEST_F(LostRankTest, WhileLossesAreSharedTheStepIsRecorded) {
    wish_.refuse_bytes = 28;
    wish_.refuse_at = 13;  // after that step the ranks share the losses of the first 7
    auto run = left();
    EXPECT_THAT(kept(), ElementsAre("step_0000000014"));
    EXPECT_EQ(run->recorder.steps.size(), 14u);
    EXPECT_EQ(run->result.summary.steps, 14);

    wish_.resume = true;
    wish_.refuse_at = -1;
    wish_.train.steps = 19;
    for (const auto& rest : train_ranks(2, wish_)) {
        EXPECT_EQ(rest->result.ended, "done");
        EXPECT_EQ(rest->recorder.steps.size(), 5u);
    }
}

TEST_F(LostRankTest, WhileLossesAreSharedTheyAreChecked) {
    wish_.refuse_bytes = 28;
    wish_.refuse_at = 13;
    wish_.job.nan_sample = 5;
    wish_.job.size = 96;  // 6 steps of an epoch
    auto run = left();
    EXPECT_TRUE(kept().empty());
    auto event =
        std::ranges::find(run->recorder.events, EventKind::nonfinite_loss, &EventRecord::kind);
    ASSERT_NE(event, run->recorder.events.end());
    EXPECT_LT(*event->values["step"].integer(), 7);
    EXPECT_EQ(event->values["step"].integer(), event->values["batch"].integer());
}

TEST_F(LostRankTest, WhileACheckpointIsMadeItIsKeptAllTheSame) {
    wish_.train.checkpoint_steps = 10;
    wish_.refuse_at = 9;
    wish_.refuse_bytes = 2 * static_cast<std::size_t>(random_state(torch::kCPU).numel());
    auto run = left();
    EXPECT_THAT(kept(), ElementsAre("step_0000000010"));
    EXPECT_EQ(run->recorder.steps.size(), 10u);
}

// Rank 0 wrote none where the other looks: as if it had been killed while it wrote.
TEST_F(LostRankTest, ACheckpointThatRankZeroDidNotCompleteIsWrittenByTheNext) {
    wish_.odd_rank = 0;
    wish_.odd_places = true;
    wish_.train.checkpoint_steps = 10;
    wish_.fail_at = 10;
    auto run = left();
    EXPECT_THAT(kept(), ElementsAre("step_0000000010"));
    EXPECT_EQ(run->recorder.steps.size(), 10u);
}

TEST(TrainerRanksTest, ResumesWithAnyNumberOfRanks) {
    for (int after : {1, 2, 4}) {
        TemporaryFolder folder;
        Wish wish;
        wish.job.size = 64;
        wish.train.batch_size = 4;  // 8 steps of an epoch on 2 ranks
        wish.train.log_interval = 1;
        wish.train.epochs = 4;
        wish.stop_after = 10;
        wish.places.checkpoints = folder.path() / "checkpoints";
        auto first = train_ranks(2, wish);
        EXPECT_EQ(first[0]->result.ended, "interrupted");
        wish.stop_after = -1;
        wish.resume = true;
        std::vector<std::unique_ptr<RankRun>> rest;
        if (after == 1)
            rest.push_back(train_rank(wish, nullptr));
        else
            rest = train_ranks(after, wish);
        for (const auto& run : rest) EXPECT_EQ(run->result.ended, "done");
        // 10 of 32 steps were done: 2 of the second epoch, which is 16 of its 64 samples.
        std::int64_t per_step = 4 * after;
        std::int64_t expected = (64 - 16 / per_step * per_step) / per_step + 2 * 64 / per_step;
        EXPECT_EQ(static_cast<std::int64_t>(rest[0]->recorder.steps.size()), expected) << after;
        if (after == 2) {
            wish = {};
            wish.job.size = 64;
            wish.train.batch_size = 4;
            wish.train.log_interval = 1;
            wish.train.epochs = 4;
            auto whole = train_ranks(2, wish);
            EXPECT_EQ(rest[1]->weights, whole[0]->weights);  // as if nothing had happened
        }
    }
}

}  // namespace
}  // namespace saturate
