// SPDX-License-Identifier: Apache-2.0
// What --apply safe must leave alone: scripts whose training a change would alter print what they
// print without it, and every name that was asked for has an outcome. Needs PyTorch
// (tests/support/python_torch --make).
#include "python/run_python.h"

namespace saturate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RunApplyTest : public RunPythonTest {
  protected:
    void SetUp() override { need("python_torch"); }

    // The script alone and with --apply: the same words.
    RunRecord applied(const std::string& body, const std::string& names) {
        folder_.file("train.py", kHead + body);
        Ran alone = plain({python_, "train.py"});
        EXPECT_EQ(alone.status, 0) << alone.err;
        Ran ran = watched({python_, "train.py"}, {"--profile", "off", "--apply", names});
        EXPECT_EQ(ran.status, 0) << ran.err;
        EXPECT_EQ(ran.out, alone.out) << ran.err;
        said_ = ran.err;
        return record();
    }
    static std::string reason(const RunRecord& record, const std::string& name) {
        for (const Json& change : record.python["changes"].items())
            if (change["name"].string() == name) return change["text"].string().value_or("");
        return "";
    }
    std::string said_;

    // Slow: a data set whose batches take over a millisecond.
    static constexpr const char* kHead =
        "import torch, threading\n"
        "from torch.utils.data import DataLoader, Dataset, Sampler\n"
        "torch.set_num_threads(1)\n"
        "torch.manual_seed(1)\n"
        "class Slow(Dataset):\n"
        "    scale = 1.0\n"
        "    def __init__(self): self.scale = 1.0\n"
        "    def __len__(self): return 160\n"
        "    def __getitem__(self, i):\n"
        "        torch.ones(300, 300) @ torch.ones(300, 300)\n"
        "        return torch.full((4,), i * self.scale / 160)\n"
        "model = torch.nn.Linear(4, 1)\n"
        "opt = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)\n"
        "def step(batch):\n"
        "    loss = (model(batch) - 1).square().mean()\n"
        "    opt.zero_grad(); loss.backward(); opt.step()\n"
        "    return loss.item()\n";
};

TEST_F(RunApplyTest, ASecondIteratorEndsWhatPersistentWorkersWouldMakeEndless) {
    RunRecord run = applied(
        "loader = DataLoader(Slow(), batch_size=16, num_workers=1)\n"
        "for epoch in range(3):\n"
        "    for i, batch in enumerate(loader):\n"
        "        print(step(batch))\n"
        "        if i == 4: print(model(next(iter(loader))).sum().item())\n",
        "safe");
    EXPECT_EQ(run.steps.size(), 30u);
    EXPECT_EQ(run.python["loaders"].items()[0]["second_iterators"].integer(), 3);
    EXPECT_THAT(states(run, "persistent_workers"), ElementsAre("applied", "taken back"));
    EXPECT_THAT(said_, testing::Not(HasSubstr("persistent_workers=True")));
}

TEST_F(RunApplyTest, NestedLoopsOverOneLoaderEnd) {
    applied(
        "loader = DataLoader(Slow(), batch_size=40, num_workers=1)\n"
        "for a in loader:\n"
        "    for b in loader: print(step(a + b))\n",
        "safe");
}

TEST_F(RunApplyTest, ALoopThatIsLeftEarlyKeepsItsWorkers) {
    RunRecord run = applied(
        "loader = DataLoader(Slow(), batch_size=16, num_workers=1)\n"
        "for epoch in range(3):\n"
        "    for i, batch in enumerate(loader):\n"
        "        print(step(batch))\n"
        "        if i == 4: break\n",
        "persistent_workers");
    EXPECT_THAT(states(run, "persistent_workers"), ElementsAre("applied"));
    EXPECT_EQ(run.python["loaders"].items()[0]["second_iterators"].integer(), 0);
}

TEST_F(RunApplyTest, ADataSetThatTheLoopChangesGetsNoWorkers) {
    RunRecord run = applied(
        "data = Slow()\n"
        "for epoch in range(2):\n"
        "    for i, batch in enumerate(DataLoader(data, batch_size=4)):\n"
        "        print(step(batch))\n"
        "        data.scale *= 0.99\n",
        "safe,num_workers=2");
    EXPECT_THAT(reason(run, "num_workers"), HasSubstr("the script changes its data set (scale)"));
}

TEST_F(RunApplyTest, ADataSetThatTheLoopChangesLateLosesItsWorkers) {
    RunRecord run = applied(
        "data = Slow()\n"
        "for i, batch in enumerate(DataLoader(data, batch_size=4)):\n"
        "    print(step(batch))\n"
        "    if i == 25: data.scale = 0.5\n",
        "num_workers=2");
    EXPECT_THAT(states(run, "num_workers"), ElementsAre("applied", "taken back"));
}

TEST_F(RunApplyTest, ASamplerThatTheLoopFeedsGetsNoWorkers) {
    RunRecord run = applied(
        "class Hard(Sampler):\n"
        "    def __init__(self): self.losses = [1.0] * 160\n"
        "    def __len__(self): return 160\n"
        "    def __iter__(self):\n"
        "        for _ in range(160): yield max(range(160), key=self.losses.__getitem__)\n"
        "sampler = Hard()\n"
        "for i, batch in enumerate(DataLoader(Slow(), batch_size=4, sampler=sampler)):\n"
        "    loss = step(batch)\n"
        "    print(loss)\n"
        "    for j in range(20): sampler.losses[(20 * i + j) % 160] *= 0.9 + loss / 1e6\n",
        "safe,num_workers=2");
    EXPECT_THAT(reason(run, "num_workers"), HasSubstr("the script changes its sampler (losses)"));
}

TEST_F(RunApplyTest, ADataSetThatAsksForItsWorkerGetsNone) {
    RunRecord run = applied(
        "class Asking(Slow):\n"
        "    def __getitem__(self, i):\n"
        "        worker = torch.utils.data.get_worker_info()\n"
        "        return super().__getitem__(i) + (0 if worker is None else worker.id + 1)\n"
        "for batch in DataLoader(Asking(), batch_size=4): print(step(batch))\n"
        "for batch in DataLoader(Asking(), batch_size=4, num_workers=1): print(step(batch))\n",
        "safe,num_workers=2");
    EXPECT_THAT(states(run, "num_workers"), ElementsAre("refused", "refused"));
    EXPECT_THAT(reason(run, "num_workers"), HasSubstr("calls get_worker_info"));
}

TEST_F(RunApplyTest, GradientsAreNotDroppedWhereOneIsMissing) {
    RunRecord run = applied(
        "other = torch.nn.Linear(4, 1)\n"
        "opt = torch.optim.AdamW([*model.parameters(), *other.parameters()], lr=0.05)\n"
        "for i in range(12):\n"
        "    opt.zero_grad(set_to_none=False)\n"
        "    loss = model(torch.ones(2, 4)).square().mean()\n"
        "    if i % 3 == 0: loss = loss + other(torch.ones(2, 4)).square().mean()\n"
        "    loss.backward()\n"
        "    print([p.grad is None for p in other.parameters()])\n"
        "    opt.step()\n"
        "    print(loss.item(), other.weight.sum().item())\n",
        "safe");
    EXPECT_THAT(states(run, "set_to_none"), ElementsAre("applied", "taken back"));
}

TEST_F(RunApplyTest, WorkersOfALoaderThatHasSomeAreChangedToo) {
    RunRecord run = applied(
        "for epoch in range(2):\n"
        "    for batch in DataLoader(Slow(), batch_size=16, num_workers=1): print(step(batch))\n",
        "num_workers=2");
    EXPECT_EQ(run.python["loaders"].items()[0]["num_workers"].integer(), 2);
    EXPECT_THAT(reason(run, "num_workers"), HasSubstr("2 workers instead of 1"));
}

TEST_F(RunApplyTest, EveryNameHasAnOutcome) {
    RunRecord run = applied("for i in range(12): print(step(torch.ones(2, 4)))\n",
                            "safe,numerics,compile,num_workers=2");
    std::vector<std::string> without;
    for (const char* name :
         {"batched_fetch", "num_workers", "pin_memory", "persistent_workers", "prefetch_factor",
          "set_to_none", "threads", "tf32", "cudnn_benchmark", "fused", "compile"})
        if (states(run, name).empty() || reason(run, name).empty()) without.emplace_back(name);
    EXPECT_THAT(without, ElementsAre());
}

TEST_F(RunApplyTest, ALoaderMayStillBeCopied) {
    applied(
        "import copy, pickle\n"
        "loader = DataLoader(Slow(), batch_size=40)\n"
        "for epoch in range(2):\n"
        "    for batch in loader: print(step(batch))\n"
        "    print(len(copy.deepcopy(loader)), len(pickle.loads(pickle.dumps(loader))))\n",
        "safe");
}

}  // namespace
}  // namespace saturate
