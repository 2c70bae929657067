// SPDX-License-Identifier: Apache-2.0
// What is proposed and what is refused, by small scripts as people write them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "project/fix_patch.h"
#include "project/fix_plan.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Planned {
    FixPlan plan;
    std::string after;  // the script with the proposals of one setting
    [[nodiscard]] std::string refusal(const std::string& setting) const {
        for (const FixRefusal& refusal : plan.refused)
            if (refusal.setting == setting) return refusal.why;
        return "";
    }
};

Planned planned(const std::string& script, const std::string& setting) {
    TemporaryFolder folder;
    folder.file("train.py", script);
    ProjectReader reader({{"python3", "train.py"}, {}, folder.path()});
    FixQuestion question{.folder = folder.path()};
    ProjectFacts facts = reader.read();
    Planned out{.plan = plan_fixes(facts, {.workers = 2, .has_bf16 = true}, question)};
    keep_exact(reader, facts, question, out.plan);
    std::vector<const FixProposal*> wanted;
    for (const FixProposal& proposal : out.plan.proposals)
        if (proposal.setting == setting) wanted.push_back(&proposal);
    FixPatch patch = make_patch(reader, facts, question, wanted);
    EXPECT_EQ(patch.problem, "");
    if (!patch.files.empty()) out.after = patch.files[0].after;
    return out;
}

// A script with these lines at the end of its step.
std::string with_step(const std::string& lines) {
    return "import torch\nfrom torch.utils.data import DataLoader\n"
           "model = torch.nn.Linear(8, 2).cuda()\n"
           "optimizer = torch.optim.Adam(model.parameters())\n"
           "loader = DataLoader(Rows(), batch_size=4, num_workers=2)\n"
           "for i, x in enumerate(loader):\n"
           "    loss = model(x.cuda()).sum()\n"
           "    optimizer.zero_grad()\n"
           "    loss.backward()\n"
           "    optimizer.step()\n" +
           lines;
}

TEST(ProposalsTest, LogsThatStandTogetherShareOneCondition) {
    Planned together = planned(with_step("    writer.add_scalar('a', loss.item(), i)\n"
                                         "    writer.add_scalar('b', loss.item(), i)\n"
                                         "    done += 1\n"
                                         "    print(loss.item())\n"),
                               "log_interval");
    EXPECT_THAT(together.after, HasSubstr("    if i % 50 == 0:\n"
                                          "        writer.add_scalar('a', loss.item(), i)\n"
                                          "        writer.add_scalar('b', loss.item(), i)\n"
                                          "    done += 1\n"
                                          "    if i % 50 == 0:\n"
                                          "        print(loss.item())\n"));
}

TEST(ProposalsTest, LogsOfAnInnerBlockKeepTheirOwn) {
    Planned nested = planned(with_step("    if i:\n"
                                       "        print(loss.item())\n"
                                       "    print('b', loss.item())\n"),
                             "log_interval");
    EXPECT_THAT(nested.after, HasSubstr("    if i % 50 == 0:\n        print('b', loss.item())\n"));
}

TEST(ProposalsTest, APartOfALineIsPrintedWithTheRest) {
    Planned part = planned(with_step("    print('loss %.4f' % loss.item(), end='')\n    print()\n"),
                           "log_interval");
    EXPECT_EQ(part.after, "");
    EXPECT_EQ(part.refusal("reads"), "it prints a part of a line");
    Planned whole =
        planned(with_step("    print('loss %.4f' % loss.item(), end='\\n')\n"), "log_interval");
    EXPECT_THAT(whole.after, HasSubstr("if i % 50 == 0:"));
}

// A script whose step adds to `total` and appends to `values`, with these lines behind the epoch.
std::string collects(const std::string& behind) {
    return "import torch\nimport numpy as np\nfrom torch.utils.data import DataLoader\n"
           "model = torch.nn.Linear(8, 2).cuda()\n"
           "optimizer = torch.optim.Adam(model.parameters())\n"
           "loader = DataLoader(Rows(), batch_size=4, num_workers=2)\n"
           "for epoch in range(9):\n"
           "    total = 0\n"
           "    values = []\n"
           "    for x in loader:\n"
           "        loss = model(x.cuda()).sum()\n"
           "        optimizer.zero_grad()\n"
           "        loss.backward()\n"
           "        optimizer.step()\n"
           "        total += loss.item()\n"
           "        values.append(loss.item())\n" +
           behind;
}

TEST(ProposalsTest, ALossThatIsOnlyUsedAfterTheEpochStaysOnTheDevice) {
    Planned kept =
        planned(collects("    print('{:.3f} of {}'.format(total, len(values)), np.mean(values))\n"),
                "log_interval");
    EXPECT_THAT(kept.after, HasSubstr("        total += loss.detach().double()\n"
                                      "        values.append(loss.detach())\n"
                                      "    print('{:.3f} of {}'.format(float(total), len(values)), "
                                      "np.mean([value.item() for value in values]))\n"));
}

TEST(ProposalsTest, ASumOfLossesKeepsItsBrackets) {
    std::string script = collects("    print(np.mean(values))\n");
    script.replace(script.rfind("values.append(loss.item())"), 26,
                   "values.append((loss + total).item())");
    EXPECT_THAT(planned(script, "log_interval").after,
                HasSubstr("values.append((loss + total).detach())\n"));
}

TEST(ProposalsTest, OnlyALoaderThatShufflesIsSaidToShuffle) {
    for (const char* order : {"", ", shuffle=False", ", shuffle=True", ", sampler=Picks()"}) {
        std::string script = with_step("    done += 1\n");
        script.replace(script.find("num_workers=2"), 13, std::string("num_workers=2") + order);
        script.replace(script.find("for i, x"), 0, "for epoch in range(2):\n  ");
        for (std::size_t at = script.find("\n    "); at != std::string::npos;
             at = script.find("\n    ", at + 7))
            script.insert(at + 1, "  ");
        std::string reason;
        for (const FixProposal& one : planned(script, "").plan.proposals)
            if (one.setting == "persistent_workers") reason = one.reason;
        bool shuffles = std::string(order).find("True") != std::string::npos ||
                        std::string(order).find("sampler") != std::string::npos;
        EXPECT_EQ(reason.find("shuffles differently") != std::string::npos, shuffles) << order;
        EXPECT_NE(reason, "") << script;
    }
}

TEST(ProposalsTest, WhatIsOffOnlyWithoutAGpuIsNotSwitchedOn) {
    std::string script = with_step("    done += 1\n");
    script.replace(script.find("for i, x"), 0,
                   "use_amp = not args.fp32\n"
                   "if not torch.cuda.is_available():\n"
                   "    use_amp = False\n"
                   "scaler = torch.amp.GradScaler(enabled=use_amp)\n");
    EXPECT_EQ(planned(script, "precision").after, "");
    std::string plain = with_step("    done += 1\n");
    plain.replace(plain.find("for i, x"), 0,
                  "use_amp = False\nscaler = torch.amp.GradScaler(enabled=use_amp)\n");
    EXPECT_THAT(planned(plain, "precision").after, HasSubstr("use_amp = True\n"));
}

TEST(ProposalsTest, ALossThatIsUsedBeforeTheEpochEndsIsRead) {
    for (const char* use : {"        print(total, values[-1])\n", "    values.sort()\n",
                            "    def show():\n        return values, total\n"}) {
        Planned read = planned(collects(use), "log_interval");
        EXPECT_THAT(read.after, Not(HasSubstr("values.append(loss.detach())"))) << use;
        EXPECT_NE(read.refusal("reads"), "") << use;
    }
}

TEST(ProposalsTest, ATensorInAConditionDecides) {
    EXPECT_EQ(
        planned(with_step("    if loss > 3:\n        loss = 0\n"), "log_interval").refusal("reads"),
        "the value decides what happens next");
}

TEST(ProposalsTest, PrecisionIsLeftToOlderLightning) {
    std::string script =
        "import torch\nimport pytorch_lightning as pl\n"
        "class Net(pl.LightningModule):\n"
        "    def training_step(self, batch, index):\n"
        "        return self(batch).sum()\n"
        "pl.Trainer(max_epochs=3{}).fit(Net(), loader)\n";
    auto of = [&](const std::string& more) {
        std::string text = script;
        return planned(text.replace(text.find("{}"), 2, more), "precision");
    };
    EXPECT_THAT(of("").after, HasSubstr("precision=\"bf16-mixed\""));
    EXPECT_EQ(of(", gpus=1").after, "");
    EXPECT_THAT(of(", gpus=1").refusal("precision"), HasSubstr("removed gpus="));
}

TEST(ProposalsTest, ATrainerOnTheCpuNeedsNothingForAGpu) {
    std::string lightning =
        "import torch\nimport lightning as L\nfrom torch.utils.data import DataLoader\n"
        "class Net(L.LightningModule):\n"
        "    def training_step(self, batch, index):\n"
        "        return self(batch).sum()\n"
        "    def configure_optimizers(self):\n"
        "        return torch.optim.Adam(self.parameters())\n"
        "KIND = \"cpu\"\n"
        "L.Trainer(max_epochs=3, accelerator=KIND).fit(Net(), DataLoader(data))\n";
    for (const char* setting : {"precision", "tf32", "pin_memory", "fused_optimizer"}) {
        Planned planned_here = planned(lightning, setting);
        EXPECT_EQ(planned_here.after, "") << setting;
        EXPECT_THAT(planned_here.refusal(setting), HasSubstr("trains on the CPU")) << setting;
    }
    EXPECT_NE(planned(lightning, "num_workers").after, "");
    std::string transformers =
        "from transformers import Trainer, TrainingArguments\n"
        "args = TrainingArguments('out', use_cpu=True)\n"
        "Trainer(model=model, args=args, train_dataset=data).train()\n";
    EXPECT_THAT(planned(transformers, "precision").refusal("precision"),
                HasSubstr("trains on the CPU"));
    EXPECT_NE(planned(transformers, "num_workers").after, "");
}

// A script with autocast and torch.compile() below these conditions.
std::string switched(const std::string& amp, const std::string& compile) {
    return "import argparse\nimport torch\nfrom torch.utils.data import DataLoader\n"
           "parser = argparse.ArgumentParser()\n"
           "parser.add_argument('--amp', action='store_true')\n"
           "parser.add_argument('--jit', type=int, default=0)\n"
           "args = parser.parse_args()\n"
           "model = torch.nn.Linear(8, 2).cuda()\n"
           "if " +
           compile +
           ":\n    model = torch.compile(model)\n"
           "optimizer = torch.optim.Adam(model.parameters())\n"
           "for x in DataLoader(Rows(), batch_size=4, num_workers=2):\n"
           "    optimizer.zero_grad()\n"
           "    if " +
           amp +
           ":\n"
           "        with torch.autocast('cuda', dtype=torch.bfloat16):\n"
           "            loss = model(x.cuda()).sum()\n"
           "    else:\n"
           "        loss = model(x.cuda()).sum()\n"
           "    loss.backward()\n"
           "    optimizer.step()\n";
}

TEST(ProposalsTest, WhatTheScriptHasAndASettingTurnsOffIsTurnedOn) {
    Planned precision = planned(switched("args.amp", "args.jit"), "precision");
    EXPECT_THAT(precision.after, HasSubstr("'--amp', action='store_true', default=True)"));
    EXPECT_EQ(precision.after.find("autocast"), precision.after.rfind("autocast"));
    EXPECT_THAT(
        planned(switched("torch.cuda.is_available() and args.amp", "args.jit"), "precision").after,
        HasSubstr("'--amp', action='store_true', default=True)"));
    Planned compile = planned(switched("args.amp", "args.jit > 0"), "compile");
    EXPECT_THAT(compile.after, Not(HasSubstr("model.compile()")));
    EXPECT_EQ(compile.refusal("compile"), "your script has it, but its settings leave it out");
}

TEST(ProposalsTest, Fp16ThatIsOffIsNoPrecision) {
    auto of = [](const std::string& more) {
        return planned(
                   "from transformers import Trainer, TrainingArguments\n"
                   "args = TrainingArguments(output_dir='x'" +
                       more + ")\nTrainer(args=args).train()\n",
                   "precision")
            .after;
    };
    EXPECT_THAT(of(", fp16=False"), HasSubstr("bf16=torch.cuda.is_available()"));
    EXPECT_EQ(of(", fp16=True"), "");
}

TEST(ProposalsTest, ALogIntervalOfOneIsRaisedWhereItIsSet) {
    std::string read = "    if (i + 1) % args.log_step == 0:\n        print(loss.item())\n";
    std::string option =
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--log_step', type=int, default=1)\n"
        "args = parser.parse_args()\n";
    Planned raised = planned(option + with_step(read), "log_interval");
    EXPECT_THAT(raised.after, HasSubstr("type=int, default=50)"));
    EXPECT_THAT(raised.after, Not(HasSubstr("% 50")));
    // What counts steps for something else stays, and nothing is put inside of it.
    std::string counts = "accumulate = 1\n" + with_step(
                                                  "    if i % accumulate == 0:\n"
                                                  "        print(loss.item())\n");
    Planned counted = planned(counts, "log_interval");
    EXPECT_EQ(counted.after, "");
    EXPECT_EQ(counted.refusal("reads"),
              "it is read every accumulate steps, and that is 1: set it higher");
}

TEST(ProposalsTest, PrecisionIsSwitchedOnByWhateverSettingHasIt) {
    std::string script = with_step("");
    script.replace(script.find("    loss = "), 4,
                   "    with torch.autocast('cuda', enabled=args.half_please):\n        ");
    std::string option =
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--half-please', action='store_true', default=False)\n"
        "args = parser.parse_args()\n";
    EXPECT_THAT(planned(option + script, "precision").after, HasSubstr("default=True)"));
}

TEST(ProposalsTest, ALoaderTakesWhatItsDictionarySays) {
    std::string script = with_step("");
    script.replace(script.find("batch_size=4, num_workers=2"), 27, "**kept");
    script.insert(script.find("loader ="),
                  "kept = dict(batch_size=4, num_workers=2, pin_memory=True)\n");
    EXPECT_THAT(planned(script, "non_blocking").after, HasSubstr("x.cuda(non_blocking=True)"));
}

TEST(ProposalsTest, WhyTheModelIsNotCompiled) {
    for (std::string wrapper : {"DataParallel", "DistributedDataParallel"}) {
        std::string script = with_step("");
        std::string end = "model = torch.nn.parallel." + wrapper + "(model)\n";
        script.insert(script.find("loader ="), end);
        EXPECT_EQ(planned(script, "compile").refusal("compile"),
                  "the model is wrapped in " + wrapper);
    }
}

TEST(ProposalsTest, WhyAnOptimizerIsNotFused) {
    auto why = [](const std::string& made) {
        return planned(
                   "import sys\nimport torch\nimport transformers\n"
                   "model = torch.nn.Linear(1, 1)\noptimizer = " +
                       made + "\n",
                   "fused_optimizer")
            .refusal("fused_optimizer");
    };
    EXPECT_EQ(why("transformers.AdamW(model.parameters())"),
              "transformers.AdamW has no fused form; torch.optim.AdamW has one");
    EXPECT_EQ(why("torch.optim.RMSprop(model.parameters())"), "RMSprop has no fused form");
    EXPECT_EQ(why("getattr(torch.optim, sys.argv[1])(model.parameters())"),
              "the class is picked by its name when the program runs");
}

TEST(ProposalsTest, ALossOfLogarithmsStaysAt32Bits) {
    std::string script = with_step("");
    script.replace(script.find("model(x.cuda()).sum()"), 21,
                   "-torch.log(1 - model(x.cuda()).sigmoid()).sum()");
    Planned fragile = planned(script, "precision");
    EXPECT_EQ(fragile.after, "");
    EXPECT_THAT(fragile.refusal("precision"), HasSubstr("log(1 - p) at 16 bits"));
    EXPECT_THAT(planned(with_step(""), "precision").after, HasSubstr("autocast"));
}

}  // namespace
}  // namespace saturate
