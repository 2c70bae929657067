// SPDX-License-Identifier: Apache-2.0
// train on several processes of this host. Slower faults are in tests/ranks.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/json.h"
#include "support/training.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kConfig =
    "job: tiny_mlp\n"
    "batch_size: 16\n"
    "dataset_size: 512\n"
    "epochs: 2\n"
    "num_workers: 0\n"
    "threads: 1\n"
    "log_interval: 1\n";

class TrainRanksTest : public testing::Test, protected TrainingFolder {
  protected:
    TrainRanksTest() : TrainingFolder(SATURATE_BINARY, kConfig) {}
    void SetUp() override {
#ifndef SATURATE_HAS_ENGINE
        GTEST_SKIP() << "built without LibTorch";
#endif
    }
};

TEST_F(TrainRanksTest, TwoProcessesEqualOneWithTwiceTheBatch) {
    Ran two = train({"-o", "two", "--nproc", "2", "--quiet"});
    ASSERT_EQ(two.status, 0) << two.err;
    EXPECT_THAT(two.out, HasSubstr("trained (2 epochs): 32 steps in "));
    EXPECT_THAT(two.out, HasSubstr("\n2 ranks: "));
    Ran one = train({"-o", "one", "--set", "batch_size=32", "--quiet"});
    ASSERT_EQ(one.status, 0) << one.err;
    // 32 steps of AdamW on the same samples, whose gradients are summed in another order (1e-7).
    auto expected = losses("one"), found = losses("two");
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [step, loss] : found)
        EXPECT_NEAR(loss, expected.at(step), 1e-4 * expected.at(step)) << step;
    double metric = *json("one/summary.json")["extra"]["metric_last"].number();
    EXPECT_NEAR(*json("two/summary.json")["extra"]["metric_last"].number(), metric, 1e-4 * metric);
}

TEST_F(TrainRanksTest, EveryRankLeavesARecordAndALog) {
    Ran ran = train({"-o", "run", "--nproc", "2", "--epochs", "1"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    for (auto [folder, rank] : {std::pair("run", 0), std::pair("run/rank1", 1)}) {
        Json info = json(fmt::format("{}/run.json", folder));
        EXPECT_EQ(info["rank"].integer(), rank);
        EXPECT_EQ(info["world_size"].integer(), 2);
        Json summary = json(fmt::format("{}/summary.json", folder));
        EXPECT_EQ(summary["ended"].string(), "done");
        EXPECT_EQ(summary["steps"].integer(), 16);
        EXPECT_TRUE(summary["stall_percent"]["communication"].number());
    }
    std::string log = read_file(folder_.path() / "run/rank1/log.txt", 1 << 20, "a log");
    EXPECT_THAT(log, HasSubstr("device: cpu\n"));
    EXPECT_THAT(log, HasSubstr("trained (1 epochs): 16 steps"));
    EXPECT_FALSE(fs::exists(folder_.path() / "run/rank1/checkpoints"));
    EXPECT_FALSE(fs::exists(folder_.path() / "run/rank1/tensorboard"));
    // One rank talks on the terminal.
    EXPECT_EQ(ran.err.find("device: cpu"), ran.err.rfind("device: cpu"));
}

TEST_F(TrainRanksTest, ResumesWithAnotherNumberOfProcesses) {
    ASSERT_EQ(train({"-o", "run", "--nproc", "2", "--steps", "20", "--quiet"}).status, 0);
    Ran more = train({"-o", "run", "--resume", "--epochs", "2", "--quiet"});
    EXPECT_EQ(more.status, 0) << more.err;
    EXPECT_EQ(json("run/resumed_1/summary.json")["ended"].string(), "done");
    Ran four = train({"-o", "run", "--resume", "--epochs", "3", "--nproc", "3"});
    EXPECT_EQ(four.status, 0) << four.err;
    EXPECT_THAT(four.err, HasSubstr("the checkpoint was made on 1 ranks, and there are 3 now: a "
                                    "step has 48 samples instead of 16\n"));
    EXPECT_TRUE(fs::exists(folder_.path() / "run/resumed_2/rank2/summary.json"));
}

TEST_F(TrainRanksTest, AMistakeIsSaidOnce) {
    folder_.file("c.yaml", "job: tiny_mlp\nepochs: 0\n");
    Ran ran = train({"--nproc", "2"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err.find("epochs is 0"), ran.err.rfind("epochs is 0")) << ran.err;
    EXPECT_NE(ran.err.find("epochs is 0"), std::string::npos);
}

TEST_F(TrainRanksTest, SaysWhatDoesNotGoTogether) {
    EXPECT_EQ(train({"--max-restarts", "2"}).err,
              "error: --max-restarts without --nproc has no effect\n"
              "  expected: --nproc N, whose processes are restarted\n"
              "  fix:      torchrun has its own --max-restarts\n");
    EXPECT_EQ(train({"--nproc", "2", "--grid", "batch_size=4,8"}).err,
              "error: --nproc with --grid\n"
              "  expected: one run on several processes, or several runs on one\n");
    EXPECT_EQ(
        train({"--nproc", "2"}, {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}})
            .err,
        "error: --nproc inside a job of 2 ranks (environment)\n"
        "  expected: one launcher: this one, or the one that set RANK\n"
        "  fix:      leave --nproc out\n");
    Ran ran = train({"--nproc", "2", "--quiet"}, {{"RANK", "x"}});
    EXPECT_EQ(ran.status, 2);
}

}  // namespace
}  // namespace saturate
