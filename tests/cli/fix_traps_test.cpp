// SPDX-License-Identifier: Apache-2.0
// Scripts in which a usual change would break the training, change it, or do nothing: fix leaves it
// out and says why. Each is a script of its own made from one that takes every change.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "base/json.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;

const char* const kScript = R"py(import argparse
import random
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--eval-every", type=int, default=1)
args = parser.parse_args()


class Pictures(Dataset):
    def __init__(self):
        self.scale = 1
        <in init>

    def __len__(self):
        return 64

    def __getitem__(self, index):
        <item>


<above main>
def main():
    device = torch.device("cuda")
    <local>
    data = Pictures()
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
    criterion = <loss>
    optimizer = <optimizer>
    scheduler = <scheduler>
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=<workers><loader>)
    for epoch in range(4):
        <epoch>
        total = 0.0
        for step, (x, y) in enumerate(loader):
            <batch>
            y = y.to(device)
            optimizer.zero_grad()
            <step>
            out = model(x)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()
            <after step>
            total += loss.item()
        print(epoch, total)
        if epoch % args.eval_every == 0:
            evaluate(model)
            scheduler.step(total)


@torch.no_grad()
def evaluate(model):
    model.eval()
    model.train()


if __name__ == "__main__":
    main()
)py";

using Slots = std::map<std::string, std::string>;

std::string script_of(const Slots& slots) {
    Slots all = {{"in init", "pass"},
                 {"item", "return torch.zeros(8), index % 2"},
                 {"above main", ""},
                 {"local", "pass"},
                 {"loss", "nn.CrossEntropyLoss()"},
                 {"optimizer", "torch.optim.Adam(model.parameters(), lr=1e-3)"},
                 {"scheduler", "torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)"},
                 {"workers", "0"},
                 {"loader", ""},
                 {"epoch", "pass"},
                 {"batch", "x = x.to(device)"},
                 {"step", "pass"},
                 {"after step", "pass"}};
    for (const auto& [name, text] : slots) all[name] = text;
    std::string out = kScript;
    for (const auto& [name, text] : all) {
        std::string slot = fmt::format("<{}>", name);
        std::size_t at = out.find(slot);
        if (at == std::string::npos) throw std::runtime_error(slot);
        // Further lines stand at the slot's own indentation.
        std::size_t begin = out.rfind('\n', at) + 1;
        std::string margin(out.find_first_not_of(' ', begin) - begin, ' '), lines;
        for (char c : text) lines += c == '\n' ? "\n" + margin : std::string(1, c);
        out.replace(at, slot.size(), lines);
    }
    return out;
}

struct Answer {
    Json json;
    std::string patch, after;
    [[nodiscard]] std::string refusal(const std::string& setting) const {
        for (const Json& one : json["refused"].items())
            if (one["setting"].string() == setting) return one["why"].string().value_or("");
        return "";
    }
    [[nodiscard]] bool proposes(const std::string& setting) const {
        for (const Json& one : json["proposals"].items())
            if (one["setting"].string() == setting) return true;
        return false;
    }
};

// Runs fix, applies the patch, and compiles what came of it.
Answer answer_to(const std::string& script) {
    TemporaryFolder folder;
    folder.file("train.py", script);
    Ran ran = run({SATURATE_BINARY, "fix", "--dry-run", "--json", "--level", "training", "-o",
                   "out", "--", "python3", "train.py"},
                  {.folder = folder.path()});
    EXPECT_TRUE(ran.status == 0 || ran.status == 1) << ran.status << ran.err;
    Answer out{.json = Json::parse(ran.out, "stdout")};
    if (out.json["patch"].is_null()) return out;
    out.patch = read_file(folder.path() / "out/fix.patch", 1 << 20, "the patch");
    Ran applied =
        run({"patch", "-p1", "-s", "--binary", "-i", "out/fix.patch"}, {.folder = folder.path()});
    EXPECT_EQ(applied.status, 0) << applied.out << applied.err << out.patch;
    EXPECT_EQ(run({"python3", "-m", "py_compile", "train.py"}, {.folder = folder.path()}).status,
              0);
    out.after = read_file(folder.path() / "train.py", 1 << 20, "the script");
    return out;
}

TEST(FixTrapsTest, TheScriptWithoutATrapTakesEveryChange) {
    Answer answer = answer_to(script_of({}));
    for (const char* setting : {"num_workers", "pin_memory", "persistent_workers",
                                "fused_optimizer", "precision", "tf32", "compile", "log_interval"})
        EXPECT_TRUE(answer.proposes(setting)) << setting << answer.json.pretty();
    EXPECT_THAT(answer.after, HasSubstr("total += loss.detach().double()"));
    EXPECT_THAT(answer.after, HasSubstr("print(epoch, float(total))"));
    EXPECT_THAT(answer.after, HasSubstr("x.to(device, non_blocking=True)"));
    EXPECT_THAT(answer.after, HasSubstr("                out = model(x)\n"));
}

struct Trap {
    const char* name;
    Slots slots;
    std::vector<std::string> refused;  // settings with a reason
};

void PrintTo(const Trap& trap, std::ostream* out) { *out << trap.name; }

class FixTrapTest : public testing::TestWithParam<Trap> {};

TEST_P(FixTrapTest, IsRefusedWithAReason) {
    Answer answer = answer_to(script_of(GetParam().slots));
    for (const std::string& setting : GetParam().refused) {
        EXPECT_FALSE(answer.proposes(setting)) << setting;
        EXPECT_NE(answer.refusal(setting), "") << setting << "\n" << answer.json.pretty();
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, FixTrapTest,
    testing::Values(
        Trap{"data_set_changed_between_epochs",
             {{"workers", "2"},
              {"epoch", "data.scale = epoch"},
              {"item", "return torch.full((8,), self.scale), index % 2"}},
             {"persistent_workers"}},
        Trap{"constant_seed_of_workers",
             {{"workers", "2"},
              {"above main", "def seed_worker(number):\n    random.seed(7 + number)\n\n\n"},
              {"loader", ", worker_init_fn=seed_worker"}},
             {"persistent_workers"}},
        Trap{"loader_made_in_each_epoch",
             {{"workers", "2"},
              {"epoch", "loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=2)"}},
             {"persistent_workers"}},
        Trap{"data_set_on_the_gpu",
             {{"in init", "self.rows = torch.zeros(64, 8).cuda()"},
              {"item", "return self.rows[index], index % 2"}},
             {"num_workers", "pin_memory"}},
        Trap{"handle_opened_in_init",
             {{"in init", "import lmdb\nself.file = lmdb.open(\"data.lmdb\")"},
              {"item", "self.file.begin()\nreturn torch.zeros(8), index % 2"}},
             {"num_workers"}},
        Trap{"closure_as_collate",
             {{"local",
               "torch.multiprocessing.set_start_method(\"spawn\")\n"
               "def pack(samples):\n    return torch.stack([s[0] for s in samples]), "
               "torch.tensor([s[1] for s in samples])\n"},
              {"loader", ", collate_fn=pack"}},
             {"num_workers"}},
        Trap{"shapes_that_vary",
             {{"above main",
               "def pad(samples):\n    rows = nn.utils.rnn.pad_sequence([s[0] for s in samples])\n"
               "    return rows, torch.tensor([s[1] for s in samples])\n\n\n"},
              {"loader", ", collate_fn=pad"}},
             {"compile", "cudnn_benchmark"}},
        Trap{"size_drawn_in_the_step",
             {{"step", "x = nn.functional.interpolate(x, size=random.choice([8, 16]))"}},
             {"compile", "cudnn_benchmark"}},
        Trap{"numpy_in_the_loop",
             {{"batch", "x = torch.from_numpy(x)\nx = x.to(device)"}},
             {"pin_memory"}},
        Trap{"batches_without_a_size",
             {{"local", "ready = DataLoader(data, batch_size=None)"}},
             {"batch_size"}},
        Trap{"batch_sampler",
             {{"local",
               "size = int(args.eval_every)\ndata = Pictures()\nsampler = Picks(data, size)\n"
               "other = DataLoader(data, batch_size=size, sampler=sampler)"},
              {"above main",
               "class Picks(torch.utils.data.Sampler):\n    def __init__(self, data, "
               "size):\n        self.size = size\n\n\n"}},
             {"batch_size"}},
        Trap{"schedule_by_steps",
             {{"scheduler", "torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=99)"},
              {"after step", "scheduler.step()"}},
             {"batch_size"}},
        Trap{"bce_loss", {{"loss", "nn.BCELoss()"}}, {"precision"}},
        Trap{"rmsprop",
             {{"optimizer", "torch.optim.RMSprop(model.parameters(), lr=1e-3)"}},
             {"fused_optimizer"}},
        Trap{"one_group_per_parameter",
             {{"optimizer",
               "torch.optim.Adam([{\"params\": [p], \"lr\": 1e-3} for p in model.parameters()])"}},
             {"fused_optimizer"}}),
    [](const testing::TestParamInfo<Trap>& info) { return info.param.name; });

TEST(FixTrapsTest, AScheduleThatFollowsTheEvaluationKeepsItsInterval) {
    EXPECT_FALSE(answer_to(script_of({})).proposes("eval_interval"));
}

TEST(FixTrapsTest, AReadThatDecidesSomethingStays) {
    Answer answer =
        answer_to(script_of({{"after step", "if loss.item() != loss.item():\n    continue"}}));
    EXPECT_THAT(answer.after, HasSubstr("if loss.item() != loss.item():"));
    EXPECT_NE(answer.refusal("reads"), "");
}

// pin_memory=args.device != "cpu": the option is not a switch of pinned memory.
TEST(FixTrapsTest, ASettingThatAValueIsComputedFromStays) {
    std::string option = "args.eval_every != 3";
    Answer answer = answer_to(script_of({{"loader", ", pin_memory=" + option}}));
    EXPECT_FALSE(answer.proposes("pin_memory"));
    EXPECT_THAT(answer.after, HasSubstr("type=int, default=1)"));
    answer = answer_to(script_of({{"workers", "args.eval_every - 1"}}));
    EXPECT_FALSE(answer.proposes("num_workers"));
    EXPECT_THAT(answer.after, HasSubstr("type=int, default=1)"));
}

TEST(FixTrapsTest, ATensorDrawnOnTheCpuStaysThere) {
    std::string line = "noise = torch.randint(0, 9, (8,)).to(device)";
    Answer answer = answer_to(script_of({{"step", line}}));
    EXPECT_THAT(answer.after, HasSubstr(line));
}

TEST(FixTrapsTest, AKeywordNeverLandsInAComment) {
    Answer answer = answer_to(script_of({{"loader",
                                          ",\n                    drop_last=True  # the last one "
                                          "is short\n                    "}}));
    EXPECT_THAT(answer.after, HasSubstr("drop_last=True,  # the last one is short\n"));
    EXPECT_THAT(answer.after, HasSubstr("pin_memory=True"));
}

TEST(FixTrapsTest, AStepThatSwallowsErrorsIsChangedAllTheSame) {
    Answer answer =
        answer_to(script_of({{"step", "try:\n    model(x)\nexcept Exception:\n    continue"}}));
    EXPECT_TRUE(answer.proposes("num_workers"));
}

TEST(FixTrapsTest, LineEndsTabsAndEncodingsStay) {
    std::string plain = script_of({}), windows, tabs;
    for (char c : plain) windows += c == '\n' ? "\r\n" : std::string(1, c);
    EXPECT_EQ(answer_to(windows).after.find("\n") == std::string::npos, false);
    Answer answer = answer_to(windows);
    for (std::size_t at = 0; (at = answer.after.find('\n', at)) != std::string::npos; ++at)
        ASSERT_EQ(answer.after[at - 1], '\r');
    for (std::size_t at = 0; at < plain.size(); ++at) {
        bool is_indent = plain.compare(at, 4, "    ") == 0 &&
                         plain.find_last_not_of(" \t", at) != std::string::npos &&
                         plain[plain.find_last_not_of(" \t", at == 0 ? 0 : at - 1)] == '\n';
        tabs += is_indent ? '\t' : plain[at];
        if (is_indent) at += 3;
    }
    EXPECT_TRUE(answer_to(tabs).proposes("precision"));
    std::string latin = "# -*- coding: latin-1 -*-\nname = 'caf\xe9'\n" + plain;
    EXPECT_THAT(answer_to(latin).after, HasSubstr("caf\xe9"));
}

}  // namespace
}  // namespace saturate
