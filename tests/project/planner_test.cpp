// SPDX-License-Identifier: Apache-2.0
// Proposals from a script that is read by the Python at hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "project/fix_patch.h"
#include "project/fix_plan.h"
#include "project/project_reader.h"
#include "project/watched_calls.h"
#include "support/run.h"

namespace saturate {
namespace {

// What is proposed for the workers of a loader with `has`, if anything.
std::optional<FixProposal> proposal_of_workers(const std::string& has, const FixMachine& machine) {
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
        if (proposal.setting == "num_workers") return proposal;
    return std::nullopt;
}

// The number of workers that is proposed; -1: none.
int proposed(const std::string& has, const FixMachine& machine) {
    auto found = proposal_of_workers(has, machine);
    return found ? std::stoi(found->after) : -1;
}

TEST(PlannerTest, HowManyWorkersIsWhatAWatchedRunShows) {
    EXPECT_EQ(proposed("0", {.workers = 2}), 2);
    EXPECT_EQ(proposed("1", {.workers = 2}), -1);
    EXPECT_EQ(proposed("0", {.workers = 7, .is_watched = true}), 7);
    EXPECT_EQ(proposed("1", {.workers = 7, .is_watched = true}), 7);
    EXPECT_EQ(proposed("7", {.workers = 7, .is_watched = true}), -1);
    EXPECT_EQ(proposed("8", {.workers = 7, .is_watched = true}), 7);
}

TEST(PlannerTest, ThatStepsWaitForDataIsSaidOnlyIfItWasSeen) {
    EXPECT_EQ(proposal_of_workers("0", {.workers = 2})->reason,
              "the training process loads every batch itself, between the steps");
    EXPECT_EQ(proposal_of_workers("0", {.workers = 2, .waits_for_data = true})->reason,
              "the training process loads every batch itself, and the steps wait for it");
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

// A loader for each stage of the training: a run that reaches the second only says nothing against
// the constant that both take.
TEST_F(WatchedPlanTest, AConstantOfSeveralLoadersIsChangedOnce) {
    folder_.file("train.py",
                 "import torch\n"
                 "from torch.utils.data import DataLoader\n"
                 "workers = 0\n"
                 "model = torch.nn.Linear(1, 1)\n"
                 "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                 "def fit(loader):\n"
                 "    for x in loader:\n"
                 "        model(x).sum().backward()\n"
                 "        optimizer.step()\n"
                 "if is_frozen:\n"
                 "    first = DataLoader(Rows(), batch_size=4, num_workers=workers)\n"
                 "    fit(first)\n"
                 "second = DataLoader(Rows(), batch_size=4, num_workers=workers)\n"
                 "fit(second)\n");
    facts_ = ProjectReader({{"python3", "train.py"}, {}, folder_.path()}).read();
    FixMachine machine{.workers = 4, .is_watched = true};
    machine.watched = watched_calls(facts_, Json::parse(run_with(0, "13"), "test"));
    std::vector<int> lines;
    for (const FixProposal& one : plan_fixes(facts_, machine, {folder_.path()}).proposals)
        if (one.setting == "num_workers") lines.push_back(facts_.call(one.call)->line);
    EXPECT_THAT(lines, testing::ElementsAre(13));
}

TEST_F(WatchedPlanTest, ThreadsAreChangedWhereTheScriptSetsThem) {
    EXPECT_THAT(plan({.threads = 2, .threads_why = "too many"}, "{}"),
                testing::Contains("threads at 16: 16 -> 2"));
}

// A loader of images that the watched run asked saturate_gpu.Loader about.
std::string asked(const std::string& like) {
    return R"({"loaders": [{"id": 3, "site": {"file": "/home/me/train.py", "line": 20},
                            "num_workers": 2, "persistent_workers": true, "starts": 2,
                            "saturate_loader": )" +
           like + R"(}], "steps_by_loader": [{"loader": 3, "steps": 50}], "optimizers": []})";
}

TEST_F(WatchedPlanTest, SaturatesOwnLoaderIsPutAroundTheCallWhereItTakesTheDataSet) {
    FixMachine machine{.workers = 2, .is_watched = true, .waits_for_data = true};
    std::string takes = asked(R"({"takes": true, "why": null, "is_installed": true})");
    machine.watched = watched_calls(facts_, Json::parse(takes, "test"));
    FixPlan plan = plan_fixes(facts_, machine, {folder_.path()});
    auto found = std::ranges::find(plan.proposals, "saturate_loader", &FixProposal::setting);
    ASSERT_NE(found, plan.proposals.end());
    EXPECT_EQ(found->level, Level::numerics);
    ProjectReader reader({{"python3", "train.py"}, {}, folder_.path()});
    FixPatch patch = make_patch(reader, facts_, {folder_.path()}, {&*found});
    EXPECT_EQ(patch.problem, "");
    EXPECT_EQ(patch.text(),
              "--- a/train.py\n"
              "+++ b/train.py\n"
              "@@ -1,6 +1,7 @@\n"
              " import os\n"
              " import torch\n"
              " from torch.utils.data import DataLoader\n"
              "+import saturate_gpu\n"
              " \n"
              " count = int(os.environ.get(\"WORKERS\", \"0\"))\n"
              " stay = bool(os.environ.get(\"STAY\"))\n"
              "@@ -17,8 +18,8 @@\n"
              "     model = torch.nn.Linear(1, 1)\n"
              "     optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
              "     other = torch.optim.Adam(model.parameters(), lr=0.1)\n"
              "-    loader = DataLoader(Rows(), batch_size=4,\n"
              "-                        num_workers=count, persistent_workers=stay)\n"
              "+    loader = saturate_gpu.Loader.like(DataLoader(Rows(), batch_size=4,\n"
              "+                        num_workers=count, persistent_workers=stay))\n"
              "     for epoch in range(3):\n"
              "         fit(model, loader, optimizer)\n"
              " \n");
    // Where nothing is waited for it is no question, and beyond the level it is not done.
    machine.waits_for_data = false;
    EXPECT_EQ(std::ranges::count(plan_fixes(facts_, machine, {folder_.path()}).proposals,
                                 "saturate_loader", &FixProposal::setting),
              0);
    machine.waits_for_data = true;
    EXPECT_EQ(
        std::ranges::count(plan_fixes(facts_, machine, {folder_.path(), Level::safe}).proposals,
                           "saturate_loader", &FixProposal::setting),
        0);
}

TEST_F(WatchedPlanTest, WorkersOfALoaderThatItReplacedAreLeftAlone) {
    std::string own =
        R"({"loaders": [{"id": 3, "site": {"file": "/home/me/train.py", "line": 20},
                         "library": "saturate_gpu", "num_workers": 2, "starts": 2}],
            "steps_by_loader": [{"loader": 3, "steps": 50}], "optimizers": []})";
    FixMachine machine{.workers = 4, .is_watched = true, .waits_for_data = true};
    EXPECT_THAT(plan(machine, own), testing::Not(testing::Contains(testing::HasSubstr("workers"))));
}

TEST_F(WatchedPlanTest, WhereItCannotTakeItsPlaceTheReasonIsTold) {
    auto refused = [&](const std::string& like) {
        FixMachine machine{.workers = 2, .is_watched = true, .waits_for_data = true};
        machine.watched = watched_calls(facts_, Json::parse(asked(like), "test"));
        FixPlan plan = plan_fixes(facts_, machine, {folder_.path()});
        auto found = std::ranges::find(plan.refused, "saturate_loader", &FixRefusal::setting);
        return found == plan.refused.end() ? "" : found->why;
    };
    EXPECT_EQ(refused("null"), "");
    EXPECT_EQ(refused(R"({"takes": false, "is_installed": true,
                          "why": "the transform RandAugment is not known to the loader"})"),
              "saturate_gpu.Loader does not support it: the transform RandAugment is not known to "
              "the loader");
    EXPECT_THAT(refused(R"({"takes": true, "why": null, "is_installed": false})"),
                testing::HasSubstr("install saturate's wheel there, then run fix again"));
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
