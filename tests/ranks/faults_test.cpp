// SPDX-License-Identifier: Apache-2.0
// Ranks that die or hang, and what the others make of it. Real processes and real waiting, so
// labelled slow.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RankFaultsTest : public testing::Test {
  protected:
    void SetUp() override {
#ifndef SATURATE_HAS_ENGINE
        GTEST_SKIP() << "built without LibTorch";
#endif
        folder_.file("c.yaml",
                     "job: tiny_mlp\nbatch_size: 16\ndataset_size: 512\nepochs: 2\n"
                     "num_workers: 0\nthreads: 1\nlog_interval: 4\ncheckpoint_interval: 0\n"
                     "eval_interval: 0\n");
    }
    // Starts a run with `words`, does `fault` (a line of bash with $rank1, the process of rank 1,
    // and $launcher) once rank 1 has written steps, and waits for the end.
    [[nodiscard]] Ran train(const std::string& words, const std::string& fault) const {
        return run({"bash", "-c",
                    fmt::format("{} train --config c.yaml --device cpu --quiet -o run {} & "
                                "launcher=$!; "
                                "until [ -s run/rank1/steps.jsonl ]; do kill -0 $launcher || exit "
                                "99; sleep 0.05; done; "
                                "rank1=$(grep -o '\"pid\": *[0-9]*' run/rank1/run.json | grep -o "
                                "'[0-9]*'); {}; wait $launcher",
                                SATURATE_BINARY, words, fault)},
                   {.folder = folder_.path()});
    }
    [[nodiscard]] int checkpoints() const {
        int out = 0;
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(folder_.path() / "run/checkpoints", error))
            out += entry.path().filename().string().starts_with("step_") ? 1 : 0;
        return out;
    }
    [[nodiscard]] Json json(const std::string& file) const {
        return Json::parse(read_file(folder_.path() / file, 1 << 24, "a record"), file);
    }

    TemporaryFolder folder_;
};

TEST_F(RankFaultsTest, AKilledRankIsNamedAndACheckpointKept) {
    Ran ran = train("--nproc 3 --seconds 600", "kill -KILL $rank1");
    EXPECT_EQ(ran.status, 4) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("rank 1 was killed by signal 9 (process "));
    EXPECT_THAT(ran.err, HasSubstr("error: rank 1 of 3 is lost: "));
    EXPECT_THAT(
        ran.err,
        HasSubstr(
            "\n  fix:      check the log of rank 1; --resume continues from the last checkpoint"));
    EXPECT_EQ(checkpoints(), 1);
    EXPECT_EQ(json("run/summary.json")["ended"].string(), "failed");
    EXPECT_EQ(json("run/rank2/summary.json")["ended"].string(), "failed");
    std::int64_t done = *json("run/summary.json")["steps"].integer();
    Ran resumed =
        run({SATURATE_BINARY, "train", "--config", "c.yaml", "--device", "cpu", "-o", "run",
             "--resume", "--nproc", "3", "--steps", std::to_string(done + 5), "--quiet"},
            {.folder = folder_.path()});
    EXPECT_EQ(resumed.status, 0) << resumed.err;
    EXPECT_EQ(json("run/resumed_1/summary.json")["steps"].integer(), 5);
}

TEST_F(RankFaultsTest, TheOthersKeepACheckpointWhenRankZeroIsKilled) {
    Ran ran = train("--nproc 2 --seconds 600",
                    "kill -KILL $(grep -o '\"pid\": *[0-9]*' run/run.json | grep -o '[0-9]*')");
    EXPECT_EQ(ran.status, 4) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("rank 0 was killed by signal 9"));
    EXPECT_EQ(checkpoints(), 1);
    std::string log = read_file(folder_.path() / "run/rank1/log.txt", 1 << 20, "a log");
    EXPECT_THAT(log, HasSubstr("error: rank 0 of 2 is lost: the store that it serves is gone"));
}

TEST_F(RankFaultsTest, AStoppedRankIsNamedAndEnded) {
    Ran ran = train("--nproc 2 --seconds 600 --set rank_timeout=3", "kill -STOP $rank1");
    EXPECT_EQ(ran.status, 4) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("error: rank 1 of 2 is lost: no sign of life for "));
    EXPECT_EQ(checkpoints(), 1);
}

TEST_F(RankFaultsTest, RestartsFromTheLastCheckpoint) {
    Ran ran = train("--nproc 2 --steps 3000 --max-restarts 1 --set checkpoint_steps=100",
                    "kill -KILL $rank1");
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("restart 1 of 1, from the last checkpoint\n"));
    EXPECT_EQ(json("run/resumed_1/summary.json")["ended"].string(), "done");
    EXPECT_TRUE(fs::exists(folder_.path() / "run/checkpoints/step_0000003000/state.json"));
    EXPECT_TRUE(fs::exists(folder_.path() / "run/resumed_1/rank1/log.txt"));
}

TEST_F(RankFaultsTest, AnInterruptReachesAllOnce) {
    Ran ran = train("--nproc 2 --seconds 600", "kill -TERM $launcher");
    EXPECT_EQ(ran.status, 130) << ran.err;
    EXPECT_EQ(checkpoints(), 1);
    EXPECT_EQ(json("run/summary.json")["ended"].string(), "interrupted");
    EXPECT_EQ(json("run/summary.json")["steps"].integer(),
              json("run/rank1/summary.json")["steps"].integer());
}

TEST_F(RankFaultsTest, TorchrunStartsIt) {
    Ran python = run({SATURATE_SOURCE_DIR "/tests/support/python_torch"});
    if (python.status != 0) GTEST_SKIP() << python.err;
    Ran ran = run({std::string(trim(python.out)), "-m", "torch.distributed.run", "--standalone",
                   "--nproc-per-node", "2", "--no-python", SATURATE_BINARY, "train", "--config",
                   "c.yaml", "--device", "cpu", "-o", "run", "--quiet"},
                  {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("trained (2 epochs): 32 steps in "));
    EXPECT_EQ(json("run/run.json")["world_size"].integer(), 2);
    EXPECT_EQ(json("run/rank1/summary.json")["ended"].string(), "done");
}

}  // namespace
}  // namespace saturate
