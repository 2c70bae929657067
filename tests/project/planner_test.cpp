// SPDX-License-Identifier: Apache-2.0
// Proposals from a script that is read by the Python at hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "project/fix_plan.h"
#include "project/project_reader.h"
#include "project/watched_calls.h"
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

// A script whose loaders' values cannot be seen by reading: a variable that is computed.
const char* const kComputed = R"py(import os
import torch
from torch.utils.data import DataLoader

count = int(os.environ.get("WORKERS", "0"))
stay = bool(os.environ.get("STAY"))


def fit(model, loader, optimizer):
    for x in loader:
        model(x).sum().backward()
        optimizer.step()


def main():
    torch.set_num_threads(16)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    other = torch.optim.Adam(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4,
                        num_workers=count, persistent_workers=stay)
    for epoch in range(3):
        fit(model, loader, optimizer)


main()
)py";

class WatchedPlanTest : public testing::Test {
  protected:
    WatchedPlanTest() {
        folder_.file("train.py", kComputed);
        ProjectReader reader({{"python3", "train.py"}, {}, folder_.path()});
        facts_ = reader.read();
    }
    // "setting at line: before -> after" of each proposal.
    [[nodiscard]] std::vector<std::string> plan(FixMachine machine, const std::string& python) {
        machine.watched = watched_calls(facts_, Json::parse(python, "test"));
        std::vector<std::string> out;
        for (const FixProposal& one : plan_fixes(facts_, machine, {folder_.path()}).proposals)
            out.push_back(one.setting + " at " + std::to_string(one.at.line) + ": " + one.before +
                          " -> " + one.after);
        return out;
    }
    static std::string run_with(int workers, const std::string& line = "20") {
        return R"({"loaders": [{"id": 3, "site": {"file": "/home/me/train.py", "line": )" + line +
               R"(}, "num_workers": )" + std::to_string(workers) +
               R"(, "persistent_workers": false, "starts": 2}],
                   "steps_by_loader": [{"loader": 3, "steps": 50}],
                   "optimizers": [{"site": {"file": "/home/me/train.py", "line": 18}}]})";
    }
    TemporaryFolder folder_;
    ProjectFacts facts_;
};

TEST_F(WatchedPlanTest, WhatReadingCannotSeeIsChangedAtTheCallThatTheRunMade) {
    FixMachine machine{.workers = 4, .is_watched = true};
    EXPECT_THAT(plan(machine, "{}"),
                testing::Not(testing::Contains(testing::HasSubstr("workers"))));
    EXPECT_THAT(plan(machine, run_with(0)),
                testing::IsSupersetOf({"num_workers at 21: count -> 4",
                                       "persistent_workers at 21: stay -> count > 0"}));
    EXPECT_THAT(plan(machine, run_with(4)),
                testing::Contains("persistent_workers at 21: stay -> count > 0"));
    // Another loader's line.
    EXPECT_THAT(plan(machine, run_with(0, "5")),
                testing::Not(testing::Contains(testing::HasSubstr("workers"))));
}

TEST_F(WatchedPlanTest, ThreadsAreChangedWhereTheScriptSetsThem) {
    EXPECT_THAT(plan({.threads = 2, .threads_why = "too many"}, "{}"),
                testing::Contains("threads at 16: 16 -> 2"));
}

TEST_F(WatchedPlanTest, CallsThatTheRunDidNotMakeAreKnown) {
    WatchedCalls watched = watched_calls(facts_, Json::parse(run_with(0), "test"));
    ASSERT_EQ(watched.unseen.size(), 1u);
    EXPECT_EQ(facts_.call(*watched.unseen.begin())->line, 19);
    // Where nothing matches, nothing is said of the rest.
    EXPECT_TRUE(watched_calls(facts_, Json()).unseen.empty());
}

}  // namespace
}  // namespace saturate
