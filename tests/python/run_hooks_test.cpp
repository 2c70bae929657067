// SPDX-License-Identifier: Apache-2.0
// What the hooks see of a loop, once with the extension, once with the hooks in Python. Needs
// PyTorch (tests/support/python_torch --make).
#include <fmt/format.h>

#include <cmath>

#include "python/run_python.h"

namespace saturate {
namespace {

using testing::HasSubstr;

// Once with the extension, once with the hooks in Python.
class RunPythonHooksTest : public RunPythonTest, public testing::WithParamInterface<const char*> {
  protected:
    void SetUp() override {
        need("python_torch");
        environment_["SATURATE_SHIM"] = GetParam();
        bool is_native = std::string(GetParam()) == "native";
        if (is_native && std::string(SATURATE_EXTENSION).empty())
            GTEST_SKIP() << "this build is without the extension";
    }
};
INSTANTIATE_TEST_SUITE_P(Both, RunPythonHooksTest, testing::Values("native", "python"),
                         [](const auto& given) { return std::string(given.param); });

TEST_P(RunPythonHooksTest, ALoopByHandIsRecordedStepByStep) {
    expect_same(script("plain_loop.py", {"weights.pt"}));
    RunRecord run = record();
    EXPECT_EQ(run.steps.size(), 96u);
    EXPECT_EQ(run.steps[0].samples, 16);
    EXPECT_TRUE(run.steps[0].input_wait_ns && run.steps[0].backward_ns &&
                run.steps[0].optimizer_ns);
    EXPECT_EQ(events(run, EventKind::evaluation), 3);
    EXPECT_EQ(events(run, EventKind::checkpoint), 3);
    EXPECT_EQ(run.info.device, "cpu");
    const Json& loader = run.python["loaders"].items()[0];
    EXPECT_EQ(loader["batch_size"].integer(), 16);
    EXPECT_EQ(loader["num_workers"].integer(), 0);
    EXPECT_EQ(loader["in_memory"].boolean(), true);
    EXPECT_EQ(loader["dataset_size"].integer(), 512);
    EXPECT_EQ(loader["site"]["line"].integer(), 14);
    EXPECT_EQ(run.python["zero_grad"]["to_zero"].integer(), 32);  // the rest is not counted
    EXPECT_EQ(run.python["zero_grad"]["site"]["line"].integer(), 22);
    EXPECT_EQ(run.python["optimizers"].items()[0]["type"].string(), "Adam");
    EXPECT_EQ(run.python["hooks"].string(), GetParam());
    const Json& fetch = run.python["fetches"].items()[0];
    EXPECT_EQ(fetch["batches"].integer(), 96);
    EXPECT_GT(fetch["measured"].integer(), 0);
    EXPECT_EQ(run.python["totals"].line(),
              R"({"steps": 96, "batches": 96, "skipped_batches": 0, "evaluation_batches": 6, )"
              R"("backwards": 96, "optimizer_steps": 96, "losses": 96, "not_finite": 0})");
    EXPECT_EQ(run.python["batch_sizes"].line(), R"([{"samples": 16, "steps": 96}])");
    // The loss that the script itself prints after the epoch is that of its last step.
    Ran alone = plain(script("plain_loop.py", {"weights.pt"}));
    ASSERT_TRUE(run.steps[95].loss);
    EXPECT_THAT(alone.out, HasSubstr(fmt::format("epoch 2 loss {:.9f}", *run.steps[95].loss)));
    EXPECT_EQ(run.python["losses"]["first"].items().size(), 64u);
    const Json::Array& tail = run.python["losses"]["tail"].items();
    ASSERT_EQ(tail.size(), 32u);
    EXPECT_EQ(tail.back().items()[0].integer(), 95);
    EXPECT_EQ(tail.back().items()[1].number(), run.steps[95].loss);
    // Nothing waits on a CPU; places are counted over the first 64 steps.
    EXPECT_EQ(run.python["reads_steps"].integer(), 64);
    for (const Json& read : run.python["reads"].items()) {
        EXPECT_EQ(read["waits"].integer(), 0);
        EXPECT_EQ(read["is_loss"].boolean(), read["site"]["line"].integer() == 30);
    }
    std::map<std::string, std::int64_t> written;
    for (const Json& folder : run.python["files"].items())
        for (const auto& [name, times] : folder["names"].members())
            if (folder["written"].boolean() == true) written[name] += *times.integer();
    EXPECT_THAT(written, testing::Contains(testing::Pair("weights.pt", testing::Ge(3))));
    EXPECT_NEAR(*run.python["optimizers"].items()[0]["values"]["lr"].number(), 1e-2, 1e-12);
}

// What a script that catches its own errors leaves: batches without a step, losses that are none.
TEST_P(RunPythonHooksTest, BatchesWithoutAStepAreCounted) {
    folder_.file("swallows.py",
                 "import torch\n"
                 "data = torch.utils.data.TensorDataset(torch.arange(40.).reshape(40, 1))\n"
                 "model = torch.nn.Linear(1, 1)\n"
                 "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
                 "for batch, in torch.utils.data.DataLoader(data, batch_size=4):\n"
                 "    try:\n"
                 "        loss = model(batch).mean() * 0 + (7 if batch[0] < 32 else float('nan'))\n"
                 "        if batch[0] == 8: raise ValueError\n"
                 "        loss.backward()\n"
                 "        if batch[0] == 16: loss.backward()\n"
                 "        opt.step()\n"
                 "        opt.zero_grad()\n"
                 "    except (ValueError, RuntimeError):\n"
                 "        continue\n");
    expect_same({python_, "swallows.py"});
    RunRecord run = record();
    // The backward that raised is none; its step goes on with the next batch.
    EXPECT_EQ(run.python["totals"].line(),
              R"({"steps": 8, "batches": 9, "skipped_batches": 1, "evaluation_batches": 0, )"
              R"("backwards": 9, "optimizer_steps": 8, "losses": 8, "not_finite": 2})");
    EXPECT_EQ(run.steps[0].loss, 7);
    ASSERT_TRUE(run.steps[7].loss);
    EXPECT_FALSE(std::isfinite(*run.steps[7].loss));
}

TEST_P(RunPythonHooksTest, ReadsThatWaitAreCountedByLine) {
    environment_["SATURATE_READS"] = "all";  // here every tensor is on the CPU
    Ran ran = watched(script("plain_loop.py", {"weights.pt"}), {"--profile", "off", "--losses"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::map<std::pair<std::string, std::int64_t>, std::int64_t> counts;
    RunRecord run = record();
    for (const Json& read : run.python["reads"].items())
        counts[{*read["call"].string(), *read["site"]["line"].integer()}] +=
            *read["count"].integer();
    EXPECT_EQ((counts[{"item", 29}]), 6);
    EXPECT_EQ((counts[{"item", 30}]), 3);
    // No step waits for its loss; they are read later, all at once.
    EXPECT_FALSE(run.steps[0].loss || run.steps[95].loss);
    EXPECT_EQ(run.python["losses"]["first"].items().size(), 64u);
    const Json& last = run.python["losses"]["tail"].items().back();
    EXPECT_EQ(last.items()[0].integer(), 95);
    EXPECT_THAT(ran.out, HasSubstr(fmt::format("epoch 2 loss {:.9f}", *last.items()[1].number())));
}

TEST_P(RunPythonHooksTest, OnADeviceALossIsKnownWhereTheScriptReadsIt) {
    environment_["SATURATE_READS"] = "all";  // here every tensor is on the CPU
    folder_.file("reads.py",
                 "import torch\n"
                 "data = torch.utils.data.TensorDataset(torch.ones(80, 4))\n"
                 "model = torch.nn.Linear(4, 1)\n"
                 "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
                 "for i, (batch,) in enumerate(torch.utils.data.DataLoader(data, batch_size=8)):\n"
                 "    loss = model(batch).mean() * 0 + i\n"
                 "    (loss / 2).backward() if i == 4 else loss.backward()\n"
                 "    opt.step(); opt.zero_grad()\n"
                 "    float(batch.sum()), loss.item(), loss.item()\n"
                 "    if i == 2: loss.item()\n");
    expect_same({python_, "reads.py"});
    RunRecord run = record();
    ASSERT_EQ(run.steps.size(), 10u);
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(run.steps[static_cast<std::size_t>(i)].loss,
                  i == 4 ? std::nullopt : std::optional<double>(i));
    std::map<std::pair<std::int64_t, std::string>, std::int64_t> steps;
    for (const Json& read : run.python["reads"].items())
        steps[{*read["site"]["line"].integer(), *read["call"].string()}] = *read["steps"].integer();
    EXPECT_EQ((steps[{9, "__float__"}]), 10);
    EXPECT_EQ((steps[{10, "item"}]), 1);
    EXPECT_EQ(run.python["reads_steps"].integer(), 10);
}

TEST_P(RunPythonHooksTest, WorkersCountTheirBatches) {
    folder_.file("workers.py",
                 "import torch\n"
                 "torch.manual_seed(1)\n"
                 "data = torch.utils.data.TensorDataset(torch.randn(160, 4))\n"
                 "model = torch.nn.Linear(4, 1)\n"
                 "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
                 "for batch, in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2):\n"
                 "    model(batch).mean().backward(); opt.step(); opt.zero_grad()\n"
                 "print(model.weight.sum().item())\n");
    expect_same({python_, "workers.py"});
    std::map<std::int64_t, std::int64_t> batches;
    RunRecord run = record();
    for (const Json& fetch : run.python["fetches"].items())
        batches[*fetch["worker"].integer()] = *fetch["batches"].integer();
    EXPECT_EQ(batches, (std::map<std::int64_t, std::int64_t>{{0, 10}, {1, 10}}));
}

TEST_P(RunPythonHooksTest, TheLastBatchOfAnEpochMayBeSmaller) {
    folder_.file("rest.py",
                 "import torch\n"
                 "data = torch.utils.data.TensorDataset(torch.ones(83, 4))\n"
                 "model = torch.nn.Linear(4, 1)\n"
                 "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
                 "for epoch in range(2):\n"
                 "    for batch, in torch.utils.data.DataLoader(data, batch_size=4):\n"
                 "        model(batch).mean().backward(); opt.step(); opt.zero_grad()\n");
    expect_same({python_, "rest.py"});
    RunRecord run = record();
    ASSERT_EQ(run.steps.size(), 42u);
    for (std::size_t i = 0; i < run.steps.size(); ++i)
        EXPECT_EQ(run.steps[i].samples, i % 21 == 20 ? 3 : 4) << i;
}

TEST_P(RunPythonHooksTest, SamplesOfReadyMadeBatchesAreThoseThatTheModelSees) {
    folder_.file(
        "ready.py",
        "import torch\n"
        "data = torch.utils.data.TensorDataset(torch.ones(40, 64, 4), torch.ones(40, 64))\n"
        "model = torch.nn.Linear(4, 1)\n"
        "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
        "for x, y in torch.utils.data.DataLoader(data, batch_size=1):\n"
        "    model(x[0]).mean().backward(); opt.step(); opt.zero_grad()\n");
    expect_same({python_, "ready.py"});
    RunRecord run = record();
    ASSERT_EQ(run.steps.size(), 40u);
    EXPECT_EQ(run.steps[39].samples, 64);
    EXPECT_EQ(run.python["loaders"].items()[0]["ready_made"].integer(), 64);
}

TEST_P(RunPythonHooksTest, ABatchMayBeADictionary) {
    folder_.file("words.py",
                 "import torch\n"
                 "data = [{'inputs': torch.ones(4), 'n': i} for i in range(80)]\n"
                 "model = torch.nn.Linear(4, 1)\n"
                 "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
                 "sampler = torch.utils.data.BatchSampler(range(80), 8, False)\n"
                 "for batch in torch.utils.data.DataLoader(data, batch_sampler=sampler):\n"
                 "    model(batch['inputs']).mean().backward(); opt.step(); opt.zero_grad()\n");
    expect_same({python_, "words.py"});
    RunRecord run = record();
    ASSERT_EQ(run.steps.size(), 10u);
    for (const StepRecord& step : run.steps) EXPECT_EQ(step.samples, 8);
}

TEST_P(RunPythonHooksTest, AStepThatBreakLeavesOpenEndsWithItsOptimizer) {
    folder_.file("dry_run.py",
                 "import torch\n"
                 "data = torch.utils.data.TensorDataset(torch.ones(80, 4))\n"
                 "model = torch.nn.Linear(4, 1)\n"
                 "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
                 "for batch, in torch.utils.data.DataLoader(data, batch_size=8):\n"
                 "    model(batch).mean().backward(); opt.step(); opt.zero_grad()\n"
                 "    break\n"
                 "torch.save(model.state_dict(), 'weights.pt')\n");
    expect_same({python_, "dry_run.py"});
    RunRecord run = record();
    ASSERT_EQ(run.steps.size(), 1u);
    EXPECT_EQ(run.steps[0].samples, 8);
    EXPECT_GE(run.steps[0].duration_ns, *run.steps[0].optimizer_ns);
}

// As Lightning evaluates, which knows how long a loader is, and as scripts draw a few samples.
TEST_P(RunPythonHooksTest, BatchesOfAnEvaluationThatIsCutShortAreOfNoStep) {
    folder_.file("cut_short.py",
                 "import torch\n"
                 "from torch.utils.data import DataLoader, TensorDataset\n"
                 "train = DataLoader(TensorDataset(torch.ones(80, 4)), batch_size=8)\n"
                 "valid = DataLoader(TensorDataset(torch.ones(80, 4)), batch_size=16)\n"
                 "shown = DataLoader(TensorDataset(torch.ones(80, 4)), batch_size=40)\n"
                 "model = torch.nn.Linear(4, 1)\n"
                 "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
                 "for epoch in range(2):\n"
                 "    for batch, in train:\n"
                 "        model(batch).mean().backward(); opt.step(); opt.zero_grad()\n"
                 "    left = iter(valid)\n"
                 "    next(left), next(left), next(iter(shown))\n"
                 "torch.save(model.state_dict(), 'weights.pt')\n");
    expect_same({python_, "cut_short.py"});
    RunRecord run = record();
    ASSERT_EQ(run.steps.size(), 20u);
    EXPECT_EQ(run.steps[10].samples, 8);
}

// As Lightning trains.
TEST_P(RunPythonHooksTest, AClosureIsNoWorkOfTheOptimizer) {
    folder_.file("closure.py",
                 "import torch\n"
                 "batches = torch.utils.data.DataLoader(torch.ones(80, 64), batch_size=8)\n"
                 "model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(40)))\n"
                 "opt = torch.optim.SGD(model[-1:].parameters(), lr=1e-3)\n"
                 "for batch in batches:\n"
                 "    def closure():\n"
                 "        loss = model(batch).mean()\n"
                 "        loss.backward()\n"
                 "        return loss\n"
                 "    opt.step(closure)\n");
    expect_same({python_, "closure.py"});
    RunRecord run = record();
    ASSERT_EQ(run.steps.size(), 10u);
    for (const StepRecord& step : run.steps)
        EXPECT_LE(*step.optimizer_ns + *step.backward_ns, step.duration_ns);
}

TEST_P(RunPythonHooksTest, AnErrorInAHookTakesThemOutAndTheScriptGoesOn) {
    folder_.file(
        "breaks.py",
        "import os, shutil, torch\n"
        "shutil.rmtree(os.environ.get('SATURATE_RUN_DIR', 'none'), True)\n"
        "model = torch.nn.Linear(4, 1)\n"
        "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
        "for i in range(5):\n"
        "    model(torch.ones(2, 4)).mean().backward(); opt.step(); opt.zero_grad()\n"
        "print('done', type(opt.zero_grad).__name__, torch.autograd.backward.__module__)\n");
    Ran ran = watched({python_, "breaks.py"}, {"--profile", "off"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "done method torch.autograd\n");
    EXPECT_THAT(ran.err, HasSubstr("saturate: no longer watching from inside ("));
    EXPECT_THAT(ran.err, testing::Not(HasSubstr("Traceback")));
}

TEST_P(RunPythonHooksTest, WithoutALoaderTheOptimizerBeatsTime) {
    expect_same(script("accumulate.py"));
    RunRecord run = record();
    EXPECT_EQ(run.steps.size(), 39u);  // from the first optimizer step on
    EXPECT_FALSE(run.steps[0].input_wait_ns);
    // What the model was given, in all calls of a step.
    EXPECT_EQ(run.steps[38].samples, 16);
}

}  // namespace
}  // namespace saturate
