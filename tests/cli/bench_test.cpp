// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class BenchTest : public testing::Test {
  protected:
    BenchTest() {
        std::string table = "day,a,b\n";
        for (int i = 0; i < 400; ++i) table += fmt::format("d{},{},{}\n", i, i % 17, i % 5);
        folder.file("t.csv", table);
        folder.file("c.yaml", "job: sequence\ndata: t.csv\nsequence_length: 20\nbatch_size: 16\n");
    }
    Ran bench(std::vector<std::string> words) {
        words.insert(words.begin(), {SATURATE_BINARY, "bench"});
        return run(words, {.folder = folder.path()});
    }
    TemporaryFolder folder;
};

TEST_F(BenchTest, TellsWhatTheLoaderGives) {
    Ran ran = bench({"loader", "--config", "c.yaml", "--seconds", "0.2"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, StartsWith("windows of a table: 300 samples for training, batches of 16 "
                                    "(window float32 20x2, target float32)\n\nworkers  samples/s"));
    EXPECT_THAT(ran.out, HasSubstr("\n   auto  "));
    EXPECT_THAT(ran.out, HasSubstr("\n  limit  "));
    EXPECT_THAT(ran.out, HasSubstr("\nenough for a GPU that trains up to "));
    EXPECT_EQ(ran.err, "");
}

TEST_F(BenchTest, AnswersInJson) {
    Ran ran = bench({"loader", "--config", "c.yaml", "--seconds", "0.2", "--json"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    Json answer = Json::parse(ran.out, "answer");
    EXPECT_EQ(answer.members()[0].first, "schema");
    EXPECT_EQ(answer["samples"].integer(), 300);
    EXPECT_EQ(answer["batch_size"].integer(), 16);
    EXPECT_EQ(answer["points"].items().front()["workers"].integer(), 0);
    EXPECT_EQ(answer["points"].items().back()["workers"].string(), "auto");
    EXPECT_GT(*answer["limit_samples_per_second"]["median"].number(), 0);
    EXPECT_EQ(answer["limit_samples_per_second"]["n"].integer(), 3);
    double feeds = *answer["feeds"]["samples_per_second"].number();
    EXPECT_NEAR(*answer["feeds"]["step_ms"].number(), 16'000 / feeds, 1e-6);
}

TEST_F(BenchTest, SaysWhatItCannotMeasure) {
    Ran ran = bench({"training", "--config", "c.yaml"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: bench: no benchmark \"training\"\n"
              "  expected: loader or gpu\n"
              "  fix:      saturate bench loader --config FILE\n");
    ran = bench({"loader"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: bench loader: --config is missing\n  expected: --config FILE\n  fix:      "
              "saturate bench loader --config FILE\n");
    folder.file("d.yaml", "job: classifier\ndata: pictures\nbatch_size: 16\n");
    ran = bench({"loader", "--config", "d.yaml"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: d.yaml:2:7: data: \"pictures\" does not exist\n"
              "  expected: a folder of images, tar or npy files, or a CSV, npy or npz file\n"
              "  fix:      saturate data make classifier\n");
}

TEST_F(BenchTest, WithoutAGpuThereIsNothingToMeasure) {
    Ran ran = bench({"gpu"});
    if (ran.status == 0) GTEST_SKIP() << "there is a GPU here";
    EXPECT_EQ(ran.status, 3);
    EXPECT_THAT(ran.err, testing::StartsWith("error: no GPU to measure: "));
    EXPECT_THAT(ran.err, testing::HasSubstr("--device cpu measures the CPU"));
    ran = bench({"gpu", "--device", "sim:RTX 4090", "--calibrate"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: --calibrate with a simulated card\n"
              "  expected: a card to measure\n  fix:      --device cuda\n");
    ran = bench({"gpu", "--device", "gpu0"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: --device is \"gpu0\"\n"
              "  expected: cuda, cpu or sim:GPU\n  fix:      --device cuda\n");
    ran = bench({"gpu", "--device", "cpu", "--job", "clasifier"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(ran.err, testing::StartsWith("error: --job clasifier\n  expected: one of "));
}

}  // namespace
}  // namespace saturate
