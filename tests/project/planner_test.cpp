// SPDX-License-Identifier: Apache-2.0
// Proposals from a script that is read by the Python at hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "project/fix_plan.h"
#include "project/project_reader.h"
#include "support/run.h"

namespace saturate {
namespace {

// The number of workers that is proposed for a loader with `has`; -1: none.
int proposed(const std::string& has, const FixMachine& machine) {
    TemporaryFolder folder;
    folder.file("train.py",
                "import torch\n"
                "from torch.utils.data import DataLoader\n"
                "model = torch.nn.Linear(1, 1)\n"
                "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                "loader = DataLoader(Rows(), batch_size=4, num_workers=" +
                    has +
                    ")\n"
                    "for epoch in range(3):\n"
                    "    for x in loader:\n"
                    "        model(x).sum().backward()\n"
                    "        optimizer.step()\n");
    ProjectReader reader({{"python3", "train.py"}, {}, folder.path()});
    FixPlan plan = plan_fixes(reader.read(), machine, {.folder = folder.path()});
    for (const FixProposal& proposal : plan.proposals)
        if (proposal.setting == "num_workers") return std::stoi(proposal.after);
    return -1;
}

TEST(PlannerTest, HowManyWorkersIsWhatAWatchedRunShows) {
    EXPECT_EQ(proposed("0", {.workers = 2}), 2);
    EXPECT_EQ(proposed("1", {.workers = 2}), -1);
    EXPECT_EQ(proposed("0", {.workers = 7, .is_watched = true}), 7);
    EXPECT_EQ(proposed("1", {.workers = 7, .is_watched = true}), 7);
    EXPECT_EQ(proposed("7", {.workers = 7, .is_watched = true}), -1);
    EXPECT_EQ(proposed("8", {.workers = 7, .is_watched = true}), 7);
}

TEST(PlannerTest, PinsTheBatchesThatLightningCopies) {
    TemporaryFolder folder;
    folder.file("train.py",
                "import torch\n"
                "import pytorch_lightning as pl\n"
                "from torch.utils.data import DataLoader\n"
                "class Net(pl.LightningModule):\n"
                "    def __init__(self):\n"
                "        super().__init__()\n"
                "        self.layer = torch.nn.Linear(1, 1)\n"
                "    def training_step(self, batch, index):\n"
                "        return self.layer(batch).sum()\n"
                "    def configure_optimizers(self):\n"
                "        return torch.optim.SGD(self.parameters(), lr=0.1)\n"
                "loader = DataLoader(Rows(), batch_size=4, num_workers=2)\n"
                "pl.Trainer().fit(Net(), loader)\n");
    ProjectReader reader({{"python3", "train.py"}, {}, folder.path()});
    FixPlan plan = plan_fixes(reader.read(), {.workers = 2}, {.folder = folder.path()});
    std::vector<std::string> settings;
    for (const FixProposal& proposal : plan.proposals) settings.push_back(proposal.setting);
    EXPECT_THAT(settings, testing::Contains("pin_memory"));
    EXPECT_THAT(settings, testing::Not(testing::Contains("non_blocking")));
}

}  // namespace
}  // namespace saturate
