// SPDX-License-Identifier: Apache-2.0
// What a run keeps, when, and how another goes on from it.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <map>

#include "small_run.h"

namespace saturate {
namespace {

using testing::HasSubstr;

TEST(TrainerCheckpointTest, NanNeverReachesACheckpoint) {
    TemporaryFolder folder;
    SmallWish setup;
    setup.job = {.size = 8, .nan_sample = 3};
    setup.train.checkpoint_steps = 1;
    setup.train.log_interval = 100;
    setup.places.checkpoints = folder.path() / "checkpoints";
    auto ran = train(setup);
    EXPECT_EQ(ran->result.ended, "failed");
    EXPECT_TRUE(list_checkpoints(setup.places.checkpoints).empty());
}

TEST(TrainerCheckpointTest, StopsEarlyAndKeepsTheBest) {
    TemporaryFolder folder;
    SmallWish setup;
    setup.job.metrics = {3, 1, 2, 2, 2};
    setup.train.epochs = 50;
    setup.train.early_stopping = 2;
    setup.train.checkpoint_epochs = 1;
    setup.train.checkpoint_keep = 1;
    setup.places.checkpoints = folder.path() / "checkpoints";
    auto ran = train(setup);
    EXPECT_EQ(ran->result.why, "no better error in 2 evaluations");
    EXPECT_EQ(ran->result.metric_best, 1);
    EXPECT_EQ(ran->result.best_step, 16);
    std::vector<std::string> kept;
    for (const auto& path : list_checkpoints(setup.places.checkpoints))
        kept.push_back(path.filename());
    EXPECT_EQ(kept, (std::vector<std::string>{"step_0000000032", "step_0000000016"}));
    EXPECT_EQ(std::filesystem::read_symlink(setup.places.checkpoints / "best"), "step_0000000016");
}

TEST(TrainerCheckpointTest, StopWantedWritesACheckpointAndEnds) {
    TemporaryFolder folder;
    SmallWish setup;
    setup.stop_after = 5;
    setup.places.checkpoints = folder.path() / "checkpoints";
    auto ran = train(setup);
    EXPECT_EQ(ran->result.ended, "interrupted");
    EXPECT_EQ(ran->recorder.steps.size(), 5u);
    EXPECT_EQ(list_checkpoints(setup.places.checkpoints).size(), 1u);
}

// Everything that a step depends on: dropout's random numbers, the optimizer, the schedule, the
// scaler, the moving mean, the position in an epoch that accumulates over its end.
TEST(TrainerCheckpointTest, ResumedRunGoesOnBitByBit) {
    for (Precision precision : {Precision::fp32, Precision::fp16}) {
        for (std::int64_t cut : {1, 5, 9, 10, 13}) {
            TemporaryFolder folder;
            SmallWish setup;
            setup.job = {.size = 40, .dropout = 0.3};
            setup.train.log_interval = 1;
            setup.train.accumulation = 2;  // 5 batches, so 3 steps per epoch
            setup.train.schedule = {
                .kind = ScheduleKind::cosine, .highest = 0.01, .warmup_steps = 3};
            setup.train.ema = 0.9;
            setup.train.step.grad_clip = 1;
            setup.train.precision_wish =
                PrecisionWish{.on = precision == Precision::fp16, .type = precision};
            setup.train.epochs = 6;
            auto uninterrupted = train(setup);

            setup.places.checkpoints = folder.path() / "checkpoints";
            setup.stop_after = cut;
            auto first = train(setup);
            EXPECT_EQ(first->result.ended, "interrupted");
            setup.stop_after = -1;
            setup.resume = true;
            auto second = train(setup);

            auto all = uninterrupted->losses(), begun = first->losses(), rest = second->losses();
            ASSERT_FALSE(rest.empty());
            std::map<std::int64_t, double> expected(all.begin(), all.end());
            for (const auto& [step, loss] : rest) EXPECT_EQ(loss, expected.at(step)) << step;
            for (const auto& [step, loss] : begun) EXPECT_EQ(loss, expected.at(step)) << step;
            EXPECT_EQ(*second->result.metric, *uninterrupted->result.metric) << cut;
            EXPECT_EQ(second->recorder.steps.back().step,
                      uninterrupted->recorder.steps.back().step);
        }
    }
}

TEST(TrainerCheckpointTest, RefusesTheCheckpointOfAnotherModel) {
    TemporaryFolder folder;
    SmallWish setup;
    setup.places.checkpoints = folder.path() / "checkpoints";
    setup.train.epochs = 1;
    (void)train(setup);
    setup.job.width = 16;
    setup.resume = true;
    std::string path = (setup.places.checkpoints / "step_0000000008/model.safetensors").string();
    try {
        (void)train(setup);
        FAIL();
    } catch (const UserError& error) {
        EXPECT_EQ(
            std::string(error.what()),
            "error: " + path +
                ": the tensors of another model: first.weight is Float [8, 4] there and "
                "Float [16, 4] here, first.bias is Float [8] there and Float [16] here, "
                "last.weight is Float [1, 8] there and Float [1, 16] here\n"
                "  expected: those of the model that the configuration describes\n"
                "  fix:      resume with the configuration that the checkpoint was made with");
    }
}

// A limit on the size of files stands in for a full disk: writes fail in the middle of a file.
class FullDisk {
  public:
    FullDisk() {
        ::signal(SIGXFSZ, SIG_IGN);
        EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
        rlimit small = before_;
        small.rlim_cur = 300;
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    }
    ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

  private:
    rlimit before_{};
};

std::vector<std::string> complaints(const SmallRun& ran) {
    std::vector<std::string> out;
    for (const std::string& line : ran.observer.said) {
        if (line.find("could not be written") != std::string::npos) out.push_back(line);
    }
    return out;
}

TEST(TrainerCheckpointTest, FullDiskCostsTheCheckpointOnly) {
    TemporaryFolder folder;
    SmallWish setup;
    setup.train.checkpoint_epochs = 1;
    setup.train.eval_epochs = 0;
    setup.places.checkpoints = folder.path() / "checkpoints";
    setup.train.epochs = 3;
    std::optional<FullDisk> full(std::in_place);
    setup.job.at_loss = [&](std::int64_t number) {
        if (number == 17) full.reset();  // room again before the third epoch's checkpoint
    };
    auto ran = train(setup);
    EXPECT_EQ(ran->result.ended, "done");
    EXPECT_EQ(ran->recorder.steps.size(), 24u);
    auto said = complaints(*ran);
    ASSERT_GE(said.size(), 1u);
    EXPECT_EQ(
        said[0],
        "the checkpoint of step 8 could not be written, training continues: " +
            (setup.places.checkpoints / "unfinished_step_0000000008/model.safetensors").string() +
            ": cannot be written: File too large");
    EXPECT_EQ(find_checkpoint(setup.places.checkpoints)->checkpoint.step, 24);
    // Nothing half-written is left behind.
    for (const auto& entry : std::filesystem::directory_iterator(setup.places.checkpoints))
        EXPECT_TRUE(entry.path().filename().string().starts_with("step_")) << entry.path();
}

// What was learnt is nowhere: that is no success.
TEST(TrainerCheckpointTest, ARunWhoseLastCheckpointCouldNotBeWrittenHasFailed) {
    TemporaryFolder folder;
    SmallWish setup;
    setup.train.checkpoint_epochs = 1;
    setup.train.eval_epochs = 0;
    setup.places.checkpoints = folder.path() / "checkpoints";
    setup.train.epochs = 1;
    std::string where = setup.places.checkpoints.string();
    auto text = [&](const SmallRun& ran) {
        EXPECT_EQ(ran.result.ended, "failed");
        return ran.result.problem ? ran.result.problem->text() : "";
    };
    {
        FullDisk full;
        EXPECT_EQ(
            text(*train(setup)),
            "error: " + where +
                ": the checkpoint of step 8, the last, could not be written: " + where +
                "/unfinished_step_0000000008/model.safetensors: cannot be written: File too large\n"
                "  expected: free space on the disk and permission to write\n"
                "  fix:      free some space, or choose a folder on another disk with -o; no "
                "checkpoint was written at all");
    }
    EXPECT_EQ(train(setup)->result.ended, "done");
    setup.train.epochs = 3;
    setup.resume = true;
    FullDisk full;
    EXPECT_THAT(text(*train(setup)),
                HasSubstr("free some space, then --resume continues from step 8"));
    EXPECT_EQ(find_checkpoint(setup.places.checkpoints)->checkpoint.step, 8);
}

TEST(TrainerCheckpointTest, RefusesTheCheckpointOfAnotherSeed) {
    TemporaryFolder folder;
    SmallWish setup;
    setup.places.checkpoints = folder.path() / "checkpoints";
    setup.train.epochs = 1;
    (void)train(setup);
    setup.train.seed = 5;
    setup.resume = true;
    try {
        (void)train(setup);
        FAIL();
    } catch (const UserError& error) {
        EXPECT_THAT(error.what(),
                    HasSubstr("made with seed 0, but it is 5 now\n"
                              "  expected: the same seed: it sets the order of the data\n"
                              "  fix:      --set seed=0"));
    }
}

// fp16 has a scaler, fp32 none: what one has no use for is left out, what it lacks begins anew.
TEST(TrainerCheckpointTest, ResumesInAnotherPrecisionWithANote) {
    for (bool from_fp16 : {true, false}) {
        TemporaryFolder folder;
        SmallWish setup;
        setup.places.checkpoints = folder.path() / "checkpoints";
        setup.train.epochs = 1;
        auto set = [&](bool fp16) {
            setup.train.precision_wish = PrecisionWish{.on = fp16, .type = Precision::fp16};
        };
        set(from_fp16);
        (void)train(setup);
        set(!from_fp16);
        setup.train.epochs = 2;
        setup.resume = true;
        auto ran = train(setup);
        EXPECT_EQ(ran->result.ended, "done");
        EXPECT_THAT(
            ran->observer.said,
            testing::Contains(from_fp16 ? "the gradient scaler of fp16 is not needed here"
                                        : "the gradient scaler of fp16 starts from scratch"));
    }
}

// The model of a checkpoint is the mean that was evaluated: loaded on its own it has that metric.
TEST(TrainerCheckpointTest, TheBestOfAMovingMeanIsTheMeanThatWasJudged) {
    TemporaryFolder folder;
    SmallWish setup;
    setup.train.ema = 0.95;
    setup.places.checkpoints = folder.path() / "checkpoints";
    auto ran = train(setup);
    Checkpoint best = read_checkpoint(setup.places.checkpoints / "best");
    auto backend = make_cpu_backend(setup.train.device, false);
    SmallJob job(setup.job);
    NamedTensors into;
    for (const auto& item : job.model().named_parameters())
        into.emplace_back(item.key(), item.value());
    load_tensors(best.model, into, "best");
    Evaluation judged = evaluate(job, job.validation_data(), {.batch_size = 8, .workers = 0},
                                 *backend, ran->recorder);
    EXPECT_EQ(judged.value, *ran->result.metric_best);
}

}  // namespace
}  // namespace saturate
