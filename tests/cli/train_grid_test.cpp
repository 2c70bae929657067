// SPDX-License-Identifier: Apache-2.0
// train --grid, and a program with a job of its own.
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/run.h"

namespace saturate {
namespace {

#ifdef SATURATE_HAS_ENGINE

const RunWhere in(const TemporaryFolder& folder) {
    return {.folder = folder.path(), .environment = {{"OMP_NUM_THREADS", "1"}}};
}

TEST(TrainGridTest, RunsEveryCombinationAndNamesTheBestFirst) {
    TemporaryFolder folder;
    folder.file("c.yaml",
                "job: tiny_mlp\nbatch_size: 32\ndataset_size: 256\nlearning_rate: 0.01\n");
    Ran ran =
        run({SATURATE_BINARY, "train", "--config", "c.yaml", "--steps", "8", "--quiet", "--json",
             "-o", "g", "--grid", "hidden_size=4,8", "--grid", "learning_rate=0.001,0.01"},
            in(folder));
    ASSERT_EQ(ran.status, 0) << ran.err;
    Json said = Json::parse(ran.out, "stdout");
    EXPECT_EQ(said["metric"].string(), "rmse");
    ASSERT_EQ(said["runs"].items().size(), 4u);
    EXPECT_EQ(said["runs"].items()[0]["values"].items().size(), 2u);
    EXPECT_TRUE(
        std::filesystem::exists(folder.path() / "g/hidden_size=8-learning_rate=0.01/summary.json"));
}

TEST(TrainGridTest, AnAxisThatIsNoneIsExplained) {
    TemporaryFolder folder;
    folder.file("c.yaml", "job: tiny_mlp\nlearning_rate: 0.01\n");
    Ran ran = run({SATURATE_BINARY, "train", "--config", "c.yaml", "--grid", "hidden_size=4,"},
                  in(folder));
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: --grid hidden_size=4,: an empty value\n"
              "  expected: KEY=VALUE,VALUE,..., each key once\n"
              "  fix:      --grid hidden_size=64,128\n");
}

TEST(OwnJobTest, OneRegisteredClassTrains) {
    TemporaryFolder folder;
    std::filesystem::path program =
        std::filesystem::path(SATURATE_BINARY).parent_path() / "own_job";
    Ran ran = run({program, "train", "--config", SATURATE_SOURCE_DIR "/examples/own_job/own.yaml",
                   "--epochs", "20", "--quiet", "--json", "-o", "run"},
                  in(folder));
    ASSERT_EQ(ran.status, 0) << ran.err;
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "run/summary.json"));
    EXPECT_NE(ran.out.find("accuracy"), std::string::npos) << ran.out;
}

// Not lost on the way: a job that the table does not know has every setting.
TEST(OwnJobTest, TakesEverySettingAndRefusesTypingErrors) {
    TemporaryFolder folder;
    std::string program = std::filesystem::path(SATURATE_BINARY).parent_path() / "own_job";
    auto said = [&](const std::string& more) {
        folder.file("own.yaml", "job: spirals\nbatch_size: 128\nepochs: 1\n" + more);
        Ran ran = run({program, "train", "--config", "own.yaml", "--quiet", "-o", "r"}, in(folder));
        EXPECT_EQ(ran.status, 2);
        return ran.err;
    };
    EXPECT_NE(said("learning_rate_min: 5\n").find("learning_rate_min is 5"), std::string::npos);
    EXPECT_NE(said("shedule: cosine\n").find("schedule"), std::string::npos);
}

TEST(TorchScriptTest, AModelSavedFromPythonTrains) {
    Ran found = run({SATURATE_SOURCE_DIR "/tests/support/python_torch"});
    if (found.status != 0)
        GTEST_SKIP() << "no Python with PyTorch: tests/support/python_torch --make";
    TemporaryFolder folder;
    folder.file("save.py",
                "import torch\n"
                "class WithLoss(torch.nn.Module):\n"
                "    def __init__(self):\n"
                "        super().__init__()\n"
                "        self.net = torch.nn.Linear(16, 1)\n"
                "    def forward(self, window, target):\n"
                "        return ((self.net(window[:, -1]).squeeze(1) - target) ** 2).mean()\n"
                "torch.jit.script(WithLoss()).save('model.pt')\n");
    std::string python = found.out.substr(0, found.out.find('\n'));
    ASSERT_EQ(run({python, "-B", "save.py"}, in(folder)).status, 0);
    ASSERT_EQ(
        run({SATURATE_BINARY, "data", "make", "sequence", "--samples", "500"}, in(folder)).status,
        0);
    folder.file("c.yaml",
                "job: torchscript\nmodel_file: model.pt\ndata: data/sequence.csv\n"
                "sequence_length: 12\nbatch_size: 32\nlearning_rate: 0.01\n");
    Ran ran = run({SATURATE_BINARY, "train", "--config", "c.yaml", "--epochs", "5", "--quiet",
                   "--json", "-o", "run"},
                  in(folder));
    ASSERT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find("metric_best"), std::string::npos) << ran.out;
}

TEST(TorchScriptTest, AFileThatIsNoModelIsExplained) {
    TemporaryFolder folder;
    ASSERT_EQ(
        run({SATURATE_BINARY, "data", "make", "sequence", "--samples", "500"}, in(folder)).status,
        0);
    folder.file("c.yaml",
                "job: torchscript\nmodel_file: none.pt\ndata: data/sequence.csv\n"
                "sequence_length: 12\nbatch_size: 32\nlearning_rate: 0.01\n");
    Ran ran = run({SATURATE_BINARY, "train", "--config", "c.yaml", "--epochs", "1", "--quiet"},
                  in(folder));
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: none.pt: there is no such file\n"
              "  expected: a TorchScript file with parameters, whose forward takes the fields of a "
              "batch and gives the loss\n"
              "  fix:      torch.jit.script(model).save(path); docs/own-model.md\n");
}

#endif

}  // namespace
}  // namespace saturate
