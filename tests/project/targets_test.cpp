// SPDX-License-Identifier: Apache-2.0
// Proposals for classes that a configuration or a framework makes, and for what is set already.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "project/fix_patch.h"
#include "project/fix_plan.h"
#include "project/project_reader.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class TargetsTest : public testing::Test {
  protected:
    void file(const std::string& name, const std::string& text) { folder_.file(name, text); }
    void plan() {
        std::vector<std::string> command = {"python3", "train.py"};
        command.insert(command.end(), command_.begin(), command_.end());
        ProjectReader reader({command, {}, folder_.path()});
        ProjectFacts facts = reader.read();
        FixQuestion question{folder_.path(), Level::training};
        plan_ = plan_fixes(facts, {.workers = 3}, question);
        keep_exact(reader, facts, question, plan_);
        std::vector<const FixProposal*> all;
        for (const FixProposal& one : plan_.proposals) all.push_back(&one);
        patch_ = make_patch(reader, facts, question, all).text();
    }
    [[nodiscard]] std::vector<std::string> proposed() const {
        std::vector<std::string> out;
        for (const FixProposal& one : plan_.proposals)
            out.push_back(one.at.file + ": " + one.setting + ": " + one.after);
        return out;
    }
    [[nodiscard]] std::string refused(const std::string& setting) const {
        for (const FixRefusal& one : plan_.refused)
            if (one.setting == setting) return one.why;
        return "";
    }
    TemporaryFolder folder_;
    std::vector<std::string> command_;  // arguments of the script
    FixPlan plan_;
    std::string patch_;
};

const char* const kHydra = R"py(import hydra
import torch


@hydra.main(version_base=None, config_path="conf", config_name="job")
def main(cfg):
    model = torch.nn.Linear(4, 1).cuda()
    loader = hydra.utils.instantiate(cfg.data.train_loader)
    optimizer = hydra.utils.instantiate(cfg.optimizer, model.parameters())
    for epoch in range(cfg.epochs):
        for x in loader:
            loss = model(x.cuda()).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


main()
)py";

TEST_F(TargetsTest, KeysAreChangedAndAddedInTheFileOfTheirGroup) {
    file("train.py", kHydra);
    file("conf/job.yaml",
         "defaults:\n  - data: rows\nepochs: 3\noptimizer:\n  _target_: torch.optim.Adam\n  lr: "
         "0.1\n");
    file("conf/data/rows.yaml",
         "train_loader:\n  _target_: torch.utils.data.DataLoader\n  num_workers: 0\n");
    plan();
    EXPECT_THAT(patch_, HasSubstr("-  num_workers: 0\n+  num_workers: 3\n"));
    EXPECT_THAT(patch_, HasSubstr("+  pin_memory: true\n"));
    EXPECT_THAT(refused("fused_optimizer"), HasSubstr("add fused: true here"));
    for (const FixRefusal& one : plan_.refused) EXPECT_THAT(one.why, Not(HasSubstr("safe place")));
}

std::string script(const std::string& loader, const std::string& more = "") {
    return "import argparse\n"
           "import torch\n"
           "from torch.utils.data import DataLoader\n"
           "parser = argparse.ArgumentParser()\n"
           "parser.add_argument('--workers', type=int, default=2)\n"
           "args = parser.parse_args()\n"
           "model = torch.nn.Linear(4, 1)\n"
           "optimizer = torch.optim.Adam(model.parameters())\n"
           "model.cuda()\n" +
           more + loader +
           "for epoch in range(3):\n"
           "    for x in loader:\n"
           "        model(x.cuda()).sum().backward()\n"
           "        optimizer.step()\n";
}

TEST_F(TargetsTest, WorkersStayWhereTheFrameworkHasTheEpochs) {
    file("train.py",
         "import torch\n"
         "import lightning as L\n"
         "from torch.utils.data import DataLoader\n"
         "class Net(L.LightningModule):\n"
         "    def training_step(self, batch, index):\n"
         "        return batch.sum()\n"
         "class Rows(L.LightningDataModule):\n"
         "    def train_dataloader(self):\n"
         "        return DataLoader([1, 2], batch_size=2, num_workers=2)\n"
         "L.Trainer(max_epochs=3).fit(Net(), datamodule=Rows())\n");
    plan();
    EXPECT_THAT(proposed(), Contains("train.py: persistent_workers: True"));
}

TEST_F(TargetsTest, AnOldLightningIsKnownByItsConfigurationToo) {
    file("job.yaml", "trainer:\n  gpus: 1\n  max_epochs: 3\n");
    file("train.py",
         "import yaml\n"
         "import pytorch_lightning as pl\n"
         "config = yaml.safe_load(open('job.yaml'))\n"
         "class Net(pl.LightningModule):\n"
         "    def training_step(self, batch, index):\n"
         "        return batch.sum()\n"
         "pl.Trainer(**config['trainer']).fit(Net())\n");
    plan();
    EXPECT_THAT(refused("precision"), HasSubstr("Lightning 2.0 removed gpus="));
}

TEST_F(TargetsTest, ArgumentsThatTheCommandGivesAreChangedInTheCommand) {
    file("train.py",
         "from transformers import HfArgumentParser, Trainer, TrainingArguments\n"
         "args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]\n"
         "Trainer(model=None, args=args).train()\n");
    plan();
    EXPECT_THAT(refused("num_workers"), HasSubstr("add --dataloader_num_workers 3"));
    EXPECT_THAT(refused("precision"), HasSubstr("add --bf16 True"));
    command_ = {"--dataloader_num_workers=2", "--fp16", "True"};
    plan();
    EXPECT_EQ(refused("num_workers"), "");
    EXPECT_EQ(refused("precision"), "");
}

TEST_F(TargetsTest, WorkersThatAreKeptOffStayOffWithoutWorkers) {
    file("train.py", script("loader = DataLoader([1], num_workers=args.workers, "
                            "persistent_workers=False)\n"));
    plan();
    EXPECT_THAT(proposed(), Contains("train.py: persistent_workers: args.workers > 0"));
}

// Starting workers anew in every short epoch may take longer than they save.
TEST_F(TargetsTest, WorkersThatStayMakeRoomForTheFirstOnes) {
    auto room = [&](const std::string& loader) {
        file("train.py", script("loader = " + loader + "\n"));
        plan();
        for (const FixProposal& one : plan_.proposals)
            if (one.setting == "persistent_workers") return one.room_for;
        return std::string("not proposed");
    };
    EXPECT_EQ(room("DataLoader([1])"), "num_workers");
    EXPECT_EQ(room("DataLoader([1], num_workers=0)"), "num_workers");
    EXPECT_EQ(room("DataLoader([1], num_workers=1)"), "");
}

// The losses of a run that ends in its first epoch are the same.
TEST_F(TargetsTest, WorkersThatStayShuffleOtherwiseFromTheSecondEpochOn) {
    auto level = [&](const std::string& more) {
        file("train.py", script("loader = DataLoader([1], num_workers=1" + more + ")\n"));
        plan();
        for (const FixProposal& one : plan_.proposals)
            if (one.setting == "persistent_workers") return std::string(level_name(one.level));
        return std::string("not proposed");
    };
    EXPECT_EQ(level(""), "safe");
    EXPECT_EQ(level(", shuffle=False"), "safe");
    EXPECT_EQ(level(", shuffle=True"), "numerics");
}

TEST_F(TargetsTest, WorkersThatASpreadGives) {
    file("train.py", script("settings = {'num_workers': args.workers, 'pin_memory': True}\n"
                            "loader = DataLoader([1], **settings)\n"));
    plan();
    EXPECT_THAT(proposed(),
                Contains("train.py: persistent_workers: settings[\"num_workers\"] > 0"));
}

TEST_F(TargetsTest, WhatIsCommentedOutInTheCallIsLeftAlone) {
    file("train.py", script("loader = DataLoader([1],\n"
                            "                    # pin_memory = True,\n"
                            "                    num_workers=2)\n"));
    plan();
    EXPECT_THAT(refused("pin_memory"), HasSubstr("commented out in this call"));
    EXPECT_THAT(proposed(), Not(Contains(HasSubstr("pin_memory"))));
}

TEST_F(TargetsTest, FlagsThatACallSetsAreSeen) {
    std::string loader = "loader = DataLoader([1], num_workers=2)\n";
    file("train.py", script(loader, "conv = torch.nn.Conv2d(1, 1, 1)\n"));
    plan();
    EXPECT_THAT(proposed(), Contains("train.py: tf32: high"));
    EXPECT_THAT(proposed(), Contains("train.py: cudnn_benchmark: True"));
    file("train.py", script(loader,
                            "conv = torch.nn.Conv2d(1, 1, 1)\n"
                            "torch.set_float32_matmul_precision('high')\n"
                            "torch.use_deterministic_algorithms(True)\n"
                            "torch.autograd.set_detect_anomaly(True)\n"));
    plan();
    EXPECT_THAT(proposed(), Not(Contains(HasSubstr("tf32"))));
    EXPECT_THAT(proposed(), Not(Contains(HasSubstr("cudnn_benchmark"))));
    EXPECT_THAT(refused("anomaly detection"), HasSubstr("much slower"));
}

TEST_F(TargetsTest, WithoutConvolutionsCudnnHasNothingToChoose) {
    file("train.py", script("loader = DataLoader([1], num_workers=2)\n"));
    plan();
    EXPECT_THAT(proposed(), Not(Contains(HasSubstr("cudnn_benchmark"))));
}

TEST_F(TargetsTest, FusedSaysWhatOlderVersionsNeed) {
    auto reason = [&] {
        plan();
        auto found = std::ranges::find(plan_.proposals, "fused_optimizer", &FixProposal::setting);
        return found == plan_.proposals.end() ? "" : found->reason;
    };
    std::string text = script("loader = DataLoader([1], num_workers=2)\n");
    file("train.py", text);
    EXPECT_THAT(reason(), HasSubstr("PyTorch before 2.4"));
    text.replace(text.find("Linear(4, 1)"), 12, "Linear(4, 1).cuda()");
    file("train.py", text);
    EXPECT_THAT(reason(), Not(HasSubstr("PyTorch before 2.4")));
}

}  // namespace
}  // namespace saturate
