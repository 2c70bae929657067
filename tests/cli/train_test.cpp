// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "support/training.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kConfig =
    "job: tiny_mlp\n"
    "batch_size: 32\n"
    "dataset_size: 512\n"
    "epochs: 3\n"
    "num_workers: 1\n"
    "threads: 1\n"
    "log_interval: 4\n";

class TrainTest : public testing::Test, protected TrainingFolder {
  protected:
    TrainTest() : TrainingFolder(SATURATE_BINARY, kConfig) {}
    void SetUp() override {
#ifndef SATURATE_HAS_ENGINE
        GTEST_SKIP() << "built without LibTorch";
#endif
    }
    // Starts a run, and sends it a signal once this checkpoint is there.
    [[nodiscard]] Ran train_until(const std::string& words, const std::string& checkpoint,
                                  const std::string& signal) const {
        return run(
            {"bash", "-c",
             // All are kept, so that the one waited for does not go before it is seen.
             fmt::format(
                 "set -m; {} train --config c.yaml --device cpu --set checkpoint_keep=100000 "
                 "{} & pid=$!; "
                 "until [ -e {}/state.json ]; do "
                 "kill -0 $pid || exit 99; sleep 0.02; done; kill -{} $pid; wait $pid",
                 SATURATE_BINARY, words, checkpoint, signal)},
            {.folder = folder_.path()});
    }
};

TEST_F(TrainTest, TrainsAndLeavesAWholeRecord) {
    Ran ran = train({"-o", "run"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("trained (3 epochs): 48 steps in "));
    EXPECT_THAT(ran.out, HasSubstr("\nrun record: run\n"));
    EXPECT_THAT(ran.err, HasSubstr("device: cpu\n"));
    EXPECT_THAT(ran.err, HasSubstr("precision: fp32\n"));
    Json summary = json("run/summary.json"), info = json("run/run.json");
    EXPECT_EQ(summary["ended"].string(), "done");
    EXPECT_EQ(summary["steps"].integer(), 48);
    EXPECT_EQ(summary["samples"].integer(), 1536);
    EXPECT_LT(*summary["loss_last"].number(), *summary["loss_first"].number());
    EXPECT_EQ(info["kind"].string(), "train");
    EXPECT_EQ(info["device"].string(), "cpu");
    EXPECT_EQ(info["settings_text"].string(), kConfig);
    EXPECT_TRUE(fs::exists(folder_.path() / "run/checkpoints/best/model.safetensors"));
    EXPECT_TRUE(fs::exists(folder_.path() / "run/checkpoints/step_0000000048/state.json"));
    EXPECT_FALSE(fs::is_empty(folder_.path() / "run/tensorboard"));
}

TEST_F(TrainTest, JsonNamesTheRecordAndItsSummary) {
    Ran ran = train({"-o", "run", "--steps", "10", "--json", "--quiet"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err, "");
    Json answer = Json::parse(ran.out, "stdout");
    EXPECT_EQ(answer["schema"].integer(), 1);
    EXPECT_EQ(answer["run"].string(), "run");
    EXPECT_EQ(answer["ended"].string(), "done");
    EXPECT_EQ(answer["why"].string(), "10 steps");
    EXPECT_EQ(answer["metric"]["name"].string(), "rmse");
    EXPECT_TRUE(answer["metric"]["best"].number());
    EXPECT_EQ(answer["summary"]["steps"].integer(), 10);
}

TEST_F(TrainTest, SetReplacesSettingsOfTheFile) {
    Ran ran = train({"-o", "run", "--set", "batch_size=128", "--set", "weight_decay=0.1",
                     "--epochs", "1", "--quiet"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(json("run/summary.json")["steps"].integer(), 4);
    EXPECT_THAT(*json("run/run.json")["settings_text"].string(), HasSubstr("batch_size: 128\n"));
}

TEST_F(TrainTest, KilledAndResumedItEqualsTheUninterruptedRunBitByBit) {
    std::string common =
        "--set log_interval=1 --set checkpoint_steps=20 --set checkpoint_interval=0";
    Ran killed = train_until(common + " --seconds 600 -o killed",
                             "killed/checkpoints/step_0000000040", "KILL");
    ASSERT_EQ(killed.status, 137) << killed.err;
    std::vector<std::string> words{
        "--set", "log_interval=1",        "--set",  "checkpoint_steps=20",
        "--set", "checkpoint_interval=0", "--quiet"};
    auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), words.begin(), words.end());
        return train(more);
    };
    // What was killed had come to some later checkpoint; go 70 steps beyond the newest.
    std::int64_t newest = 0;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "killed/checkpoints")) {
        std::string name = entry.path().filename();
        if (name.starts_with("step_")) newest = std::max(newest, *parse_integer(name.substr(5)));
    }
    std::string steps = std::to_string(newest + 70);
    Ran resumed = with({"--resume", "auto", "--steps", steps, "-o", "killed"});
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    Ran whole = with({"--steps", steps, "-o", "whole"});
    ASSERT_EQ(whole.status, 0) << whole.err;
    auto expected = losses("whole"), got = losses("killed/resumed_1");
    ASSERT_GE(got.size(), 60u);
    for (const auto& [step, loss] : got) EXPECT_EQ(loss, expected.at(step)) << step;
    std::string a = read_file(folder_.path() / "whole/checkpoints" /
                                  fmt::format("step_{:010}", newest + 70) / "model.safetensors",
                              1 << 24, "weights");
    std::string b = read_file(folder_.path() / "killed/checkpoints" /
                                  fmt::format("step_{:010}", newest + 70) / "model.safetensors",
                              1 << 24, "weights");
    EXPECT_TRUE(a == b);
}

TEST_F(TrainTest, InterruptFinishesTheStepAndKeepsEverything) {
    Ran ran = train_until("--seconds 600 -o run", "run/checkpoints/step_0000000016", "INT");
    EXPECT_EQ(ran.status, 130) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("interrupted: "));
    Json summary = json("run/summary.json");
    EXPECT_EQ(summary["ended"].string(), "interrupted");
    std::int64_t steps = *summary["steps"].integer();
    EXPECT_TRUE(fs::exists(folder_.path() / "run/checkpoints" / fmt::format("step_{:010}", steps)));
}

TEST_F(TrainTest, SaysWhatCannotBeTrained) {
    auto said = [&](const std::string& config, std::vector<std::string> words) {
        folder_.file("c.yaml", config);
        Ran ran = train(words);
        EXPECT_EQ(ran.status, 2);
        EXPECT_FALSE(fs::exists(folder_.path() / "saturate-runs"));  // nothing begun is left behind
        return ran.err;
    };
    std::string plain = "device: cpu\n";
    EXPECT_EQ(said("job: tiny_mlp\nepochs: 0\n", {}),
              "error: c.yaml:2:9: epochs is 0: nothing would be trained\n"
              "  expected: 1 or more\n"
              "  fix:      epochs: 1\n");
    EXPECT_EQ(said("job: tiny_mlp\n", {}),
              "error: the configuration does not say how long to train\n"
              "  expected: epochs in the configuration, or --epochs, --steps or --seconds\n"
              "  fix:      epochs: 10\n");
    EXPECT_EQ(said("job: tiny_mlp\nepochs: 1\n", {"--epochs", "0"}),
              "error: --epochs is \"0\"\n"
              "  expected: a whole number from 1 to 10000000\n");
    EXPECT_EQ(
        said("job: tiny_mlp\nepochs: 1\n", {"--epochs", "1", "--steps", "2"}),
        "error: --epochs, --steps and --seconds cannot be combined\n  expected: one of them\n");
    EXPECT_EQ(said("job: tiny_mlp\nepochs: 1\noptimizer: adamx\nschedule: cosin\n", {}),
              "error: c.yaml:3:12: optimizer is \"adamx\"\n"
              "  expected: adamw, adam, sgd\n"
              "  fix:      adamw\n"
              "error: c.yaml:4:11: schedule is \"cosin\"\n"
              "  expected: constant, cosine, step\n"
              "  fix:      cosine\n");
    EXPECT_EQ(said("job: tiny_mlp\nepochs: 1\nbatch_size: 64\ndataset_size: 10\n", {}),
              plain +
                  "error: batch_size is 64, and the training data has 10 samples\n"
                  "  expected: 1 to 10\n"
                  "  fix:      batch_size: 10\n");
    EXPECT_EQ(said(kConfig, {"--resume"}),
              "error: saturate-runs: there is no checkpoint to resume from\n  expected: a "
              "run folder with checkpoints, or one of its checkpoints\n  fix:      leave --resume "
              "out to start from the beginning\n");
    EXPECT_EQ(said(kConfig, {"--device", "gpu"}),
              "error: --device is given twice\n"
              "  expected: once\n");
}

TEST_F(TrainTest, WantsAJobAndADeviceThatAreThere) {
    folder_.file("other.yaml", "batch_size: 3\nepochs: 1\n");
    Ran ran = run({SATURATE_BINARY, "train", "--config", "other.yaml", "--device", "tpu"},
                  {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: --device is \"tpu\"\n"
              "  expected: auto, cpu, cuda, cuda:N or sim:GPU\n"
              "  fix:      --device auto\n");
    ran = run({SATURATE_BINARY, "train", "--config", "other.yaml", "--device", "cpu"},
              {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(ran.err, HasSubstr("error: no job: setting says what to train\n  expected: "));
}

TEST_F(TrainTest, AFileDeletedInMidEpochIsReplacedAndNamed) {
    Ran made =
        run({SATURATE_BINARY, "data", "make", "classifier", "-o", "pictures", "--samples", "60"},
            {.folder = folder_.path()});
    ASSERT_EQ(made.status, 0) << made.err;
    folder_.file("c.yaml",
                 "job: classifier\ndata: pictures\nbatch_size: 4\nnum_workers: 0\nthreads: 1\n"
                 "image_size: 32\nlog_interval: 1\ncheckpoint_steps: 8\ncheckpoint_interval: 0\n");
    // The listing is made when training starts; the class goes once the first checkpoint is there.
    Ran ran = run({"bash", "-c",
                   fmt::format("{} train --config c.yaml --device cpu --epochs 2 -o run & pid=$!; "
                               "until [ -e run/checkpoints/step_0000000008/state.json ]; do "
                               "kill -0 $pid || exit 99; sleep 0.02; done; "
                               "rm pictures/train/ring/*; wait $pid",
                               SATURATE_BINARY)},
                  {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::string events = read_file(folder_.path() / "run/events.jsonl", 1 << 24, "events");
    EXPECT_THAT(events, HasSubstr("pictures/train/ring/"));
    EXPECT_EQ(json("run/summary.json")["ended"].string(), "done");
}

TEST_F(TrainTest, TellsWhatWasFilledAndLeftOutOfATable) {
    std::string table = "day,a,b\n";
    for (int i = 0; i < 80; ++i)
        table += i == 40 ? "x,,1\n" : fmt::format("x,{},{}\n", i % 7, i % 5);
    folder_.file("t.csv", table);
    folder_.file("c.yaml",
                 "job: sequence\ndata: t.csv\nsequence_length: 4\nnum_features: 2\nhidden_size: 4\n"
                 "batch_size: 8\nthreads: 1\nnum_workers: 0\n");
    Ran ran = train({"-o", "run", "--steps", "2"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("t.csv: 1 missing cell was filled with the value of the row "
                                   "before\nt.csv: not numbers, so left out: day\n"));
    EXPECT_THAT(read_file(folder_.path() / "run/events.jsonl", 1 << 20, "events"),
                HasSubstr("so left out: day"));
}

TEST_F(TrainTest, TornCheckpointsAreNamed) {
    ASSERT_EQ(train({"-o", "run", "--steps", "8", "--quiet"}).status, 0);
    fs::path file = folder_.path() / "run/checkpoints/step_0000000008/state.safetensors";
    auto size = fs::file_size(file);
    fs::resize_file(file, size / 2);
    Ran ran = train({"-o", "run", "--resume", "--quiet"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(
        ran.err,
        fmt::format(
            "error: run/checkpoints/step_0000000008/state.safetensors: incomplete: {} bytes of {}\n"
            "  expected: the file as it was written\n"
            "  fix:      resume from another checkpoint of this folder\n",
            size / 2, size));
}

// `a` and `a-big`: the run of one is not the other's, whatever its folder is called.
TEST_F(TrainTest, ResumeTakesARunOfItsOwnConfiguration) {
    folder_.file("a.yaml", kConfig);
    folder_.file("a-big.yaml", kConfig);
    auto with = [&](const std::string& config, std::vector<std::string> words) {
        std::vector<std::string> command{SATURATE_BINARY, "train",    "--config",
                                         config,          "--device", "cpu"};
        command.insert(command.end(), words.begin(), words.end());
        return run(command, {.folder = folder_.path()});
    };
    ASSERT_EQ(with("a-big.yaml", {"--steps", "8"}).status, 0);
    Ran other = with("a.yaml", {"--steps", "16", "--resume"});
    EXPECT_EQ(other.status, 2);
    EXPECT_THAT(other.err, HasSubstr("there is no checkpoint to resume from"));
    Ran own = with("a-big.yaml", {"--steps", "16", "--resume"});
    EXPECT_EQ(own.status, 0) << own.err;
    EXPECT_THAT(own.err, HasSubstr("step_0000000008 at step 8\n"));
}

TEST_F(TrainTest, ResumeKeepsWhatSetGaveWhenTheRunBegan) {
    ASSERT_EQ(train({"-o", "run", "--steps", "4", "--set", "batch_size=64", "--set",
                     "learning_rate=0.5", "--quiet"})
                  .status,
              0);
    Ran ran = train({"-o", "run", "--resume", "--steps", "8", "--set", "learning_rate=0.25"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.err,
                HasSubstr("kept from the start of the run: batch_size=64, learning_rate=0.5\n"));
    std::string text = *json("run/resumed_1/run.json")["settings_text"].string();
    EXPECT_THAT(text, HasSubstr("batch_size: 64\n"));
    EXPECT_THAT(text, HasSubstr("learning_rate: 0.25\n"));
    EXPECT_EQ(json("run/resumed_1/summary.json")["steps"].integer(), 4);
    // And a third time, from the checkpoint of the second.
    ASSERT_EQ(train({"-o", "run", "--resume", "--steps", "10", "--quiet"}).status, 0);
    EXPECT_THAT(*json("run/resumed_2/run.json")["settings_text"].string(),
                HasSubstr("learning_rate: 0.25\n"));
}

TEST_F(TrainTest, ResumeAfterAKillBeforeTheFirstCheckpointBeginsAnew) {
    ASSERT_EQ(train({"-o", "run", "--steps", "4", "--set", "batch_size=64", "--quiet"}).status, 0);
    fs::remove_all(folder_.path() / "run/checkpoints");  // as a kill leaves it
    fs::remove(folder_.path() / "run/summary.json");
    Ran ran = train({"-o", "run", "--resume", "--steps", "4"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("run has no checkpoint yet: starting from the beginning\n"));
    EXPECT_EQ(json("run/resumed_1/summary.json")["samples"].integer(), 256);
    EXPECT_TRUE(fs::exists(folder_.path() / "run/checkpoints/step_0000000004/state.json"));
    // A folder of something else is not a run.
    folder_.file("other/notes.txt", "mine");
    EXPECT_EQ(train({"-o", "other", "--resume"}).status, 2);
    EXPECT_EQ(read_file(folder_.path() / "other/notes.txt", 100, "notes"), "mine");
}

TEST_F(TrainTest, OneProcessAtATimeWritesTheCheckpointsOfAFolder) {
    ASSERT_EQ(train({"-o", "run", "--steps", "4", "--quiet"}).status, 0);
    Ran ran = run({"flock", "-x", "run/checkpoints/.lock", SATURATE_BINARY, "train", "--config",
                   "c.yaml", "--device", "cpu", "-o", "run", "--resume", "--steps", "8"},
                  {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(
        ran.err,
        HasSubstr(
            "error: run/checkpoints: another train is writing its checkpoints here (process "));
    EXPECT_FALSE(fs::exists(folder_.path() / "run/resumed_1"));
    EXPECT_EQ(train({"-o", "run", "--resume", "--steps", "8", "--quiet"}).status, 0);
}

// A limit on the size of files stands in for a full disk: the weights are larger, the rest is not.
TEST_F(TrainTest, NoCheckpointAtAllIsAFailureAlsoWhenQuiet) {
    Ran ran = run({"bash", "-c",
                   fmt::format("trap '' XFSZ; ulimit -f 16; {} train --config c.yaml --device cpu "
                               "--set hidden_size=512 --steps 16 -o run --quiet",
                               SATURATE_BINARY)},
                  {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 4) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("error: run/checkpoints: the checkpoint of step 16, the last, "
                                   "could not be written: "));
    EXPECT_THAT(ran.err, HasSubstr("no checkpoint was written at all"));
}

// 1,024 stacks of 8 MB do not fit: the run ends with the cause, not by a signal.
TEST_F(TrainTest, TooManyWorkersForTheLimitsEndTheRunWithTheCause) {
    Ran ran = run({"bash", "-c",
                   fmt::format("ulimit -v 5000000; {} train --config c.yaml --device cpu --set "
                               "num_workers=1024 -o r",
                               SATURATE_BINARY)},
                  {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 4) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(" of 1024 cannot be started: the limits of this process are "
                                   "reached\n  expected: room for a thread and its stack"));
    EXPECT_EQ(json("r/summary.json")["ended"].string(), "failed");
}

TEST_F(TrainTest, ABareRunLeavesNoCheckpoint) {
    Ran ran = train({"--bare", "--steps", "20", "-o", "r"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_FALSE(fs::exists(folder_.path() / "r/checkpoints"));
    EXPECT_TRUE(fs::exists(folder_.path() / "r/summary.json"));
}

// What is compiled for the CPU has no place on a card that is not there.
TEST_F(TrainTest, ASimulatedStepIsCapturedWithoutACompiler) {
    Ran ran = run(
        {"env", "SATURATE_PYTHON=/nowhere/python", SATURATE_BINARY, "train", "--config", "c.yaml",
         "--device", "sim:RTX 4090", "--set", "compile=true", "--steps", "20", "-o", "r"},
        {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.err, testing::Not(HasSubstr("not compiled")));
    // And what learns nothing has no loss.
    EXPECT_THAT(ran.out, testing::ContainsRegex("^trained \\(20 steps\\): 20 steps in [0-9]+ s\n"));
    EXPECT_FALSE(json("r/summary.json")["loss_last"].number());
    EXPECT_TRUE(losses("r").empty());
}

}  // namespace
}  // namespace saturate
