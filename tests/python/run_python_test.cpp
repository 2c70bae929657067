// SPDX-License-Identifier: Apache-2.0
// Scripts in the style of users' own (tests/python/scripts): with run they print what they print
// without, and the record holds what they did. Needs PyTorch (tests/support/python_torch --make)
// and, for some, the frameworks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "support/run.h"
#include "telemetry/record_reader.h"

namespace saturate {
namespace {

using testing::HasSubstr;

constexpr const char* kSource = SATURATE_SOURCE_DIR;

// The Python that a script of tests/support prints; empty: none.
std::string python_of(const std::string& finder) {
    Ran ran = run({std::string(kSource) + "/tests/support/" + finder});
    return ran.status == 0 ? std::string(trim(ran.out)) : "";
}

class RunPythonTest : public testing::Test {
  protected:
    // Skips aloud where there is no such Python.
    void need(const std::string& finder) {
        python_ = python_of(finder);
        if (python_.empty()) GTEST_SKIP() << "tests/support/" << finder << " finds no Python";
    }
    std::vector<std::string> script(const std::string& name,
                                    const std::vector<std::string>& arguments = {}) const {
        std::vector<std::string> out = {python_,
                                        std::string(kSource) + "/tests/python/scripts/" + name};
        out.insert(out.end(), arguments.begin(), arguments.end());
        return out;
    }
    Ran plain(const std::vector<std::string>& command) const {
        return run(command, {.folder = folder_.path(), .environment = environment_});
    }
    // The record is in folder_/r.
    Ran watched(const std::vector<std::string>& command,
                std::vector<std::string> options = {}) const {
        std::vector<std::string> words = {SATURATE_BINARY, "run", "-o", "r"};
        words.insert(words.end(), options.begin(), options.end());
        words.emplace_back("--");
        words.insert(words.end(), command.begin(), command.end());
        return plain(words);
    }
    [[nodiscard]] RunRecord record(const std::string& name = "r") const {
        return read_run(folder_.path() / name);
    }
    static int events(const RunRecord& record, EventKind kind) {
        return static_cast<int>(std::ranges::count(record.events, kind, &EventRecord::kind));
    }
    // The states of a change that --apply made, in order: "applied", "taken back".
    static std::vector<std::string> states(const RunRecord& record, const std::string& name) {
        std::vector<std::string> out;
        for (const Json& change : record.python["changes"].items())
            if (change["name"].string() == name)
                out.push_back(change["state"].string().value_or(""));
        return out;
    }
    void expect_same(const std::vector<std::string>& command) {
        Ran alone = plain(command);
        ASSERT_EQ(alone.status, 0) << alone.err;
        Ran ran = watched(command, {"--profile", "off"});
        EXPECT_EQ(ran.status, 0) << ran.err;
        EXPECT_EQ(ran.out, alone.out);
        EXPECT_THAT(ran.err, testing::Not(HasSubstr("not watching from inside")));
    }
    // What "saturate diagnose r --json" says.
    [[nodiscard]] Json diagnosed() const {
        Ran ran = run({SATURATE_BINARY, "diagnose", "r", "--json"}, {.folder = folder_.path()});
        return Json::parse(ran.out, "stdout");
    }
    std::string python_;
    std::map<std::string, std::string> environment_ = {{"CUDA_VISIBLE_DEVICES", "-1"}};
    TemporaryFolder folder_;
};

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
}

TEST_P(RunPythonHooksTest, ReadsThatWaitAreCountedByLine) {
    environment_["SATURATE_READS"] = "all";  // here every tensor is on the CPU
    expect_same(script("plain_loop.py", {"weights.pt"}));
    std::map<std::pair<std::string, std::int64_t>, std::int64_t> counts;
    RunRecord run = record();
    for (const Json& read : run.python["reads"].items())
        counts[{*read["call"].string(), *read["site"]["line"].integer()}] +=
            *read["count"].integer();
    EXPECT_EQ((counts[{"item", 29}]), 6);
    EXPECT_EQ((counts[{"item", 30}]), 3);
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
    EXPECT_THAT(ran.err, HasSubstr("saturate: not watching from inside any more ("));
    EXPECT_THAT(ran.err, testing::Not(HasSubstr("Traceback")));
}

TEST_P(RunPythonHooksTest, WithoutALoaderTheOptimizerBeatsTime) {
    expect_same(script("accumulate.py"));
    RunRecord run = record();
    EXPECT_EQ(run.steps.size(), 39u);  // from the first optimizer step on
    EXPECT_FALSE(run.steps[0].input_wait_ns);
}

TEST_F(RunPythonTest, ASlowFolderIsNamedWithItsLineAndAnEdit) {
    need("python_torch");
    if (IsSkipped()) return;
    expect_same(script("image_folder.py", {"images", "1"}));
    Ran ran = run({SATURATE_BINARY, "diagnose", "r"}, {.folder = folder_.path()});
    EXPECT_THAT(ran.out, HasSubstr("1. F01 input wait"));
    EXPECT_THAT(ran.out, HasSubstr("     F02 loader runs in the training process"));
    EXPECT_THAT(ran.out, HasSubstr("tests/python/scripts/image_folder.py:33 (<module>)\n"));
    EXPECT_THAT(
        ran.out,
        HasSubstr("-loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)\n"));
    EXPECT_THAT(ran.out, HasSubstr("+loader = torch.utils.data.DataLoader(data, batch_size=8, "
                                   "shuffle=True, num_workers="));
}

TEST_F(RunPythonTest, ApplyingWorkersKeepsTheLosses) {
    need("python_torch");
    if (IsSkipped()) return;
    Ran alone = plain(script("image_folder.py", {"images", "3"}));
    Ran ran = watched(script("image_folder.py", {"images", "3"}),
                      {"--profile", "off", "--apply", "num_workers=3,persistent_workers"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, alone.out);
    RunRecord run = record();
    EXPECT_EQ(run.steps.size(), 72u);
    EXPECT_EQ(states(run, "num_workers"), std::vector<std::string>{"applied"});
    EXPECT_EQ(states(run, "persistent_workers"), std::vector<std::string>{"applied"});
}

TEST_F(RunPythonTest, ApplyingBatchedFetchKeepsTheLossesAndRefusesWorkers) {
    need("python_torch");
    if (IsSkipped()) return;
    Ran alone = plain(script("plain_loop.py", {"weights.pt"}));
    Ran ran =
        watched(script("plain_loop.py", {"weights.pt"}),
                {"--profile", "off", "--apply", "batched_fetch,num_workers=2,autocast,fused"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, alone.out);
    RunRecord run = record();
    EXPECT_EQ(states(run, "batched_fetch"), (std::vector<std::string>{"applied", "applied"}));
    EXPECT_EQ(states(run, "num_workers"), (std::vector<std::string>{"refused", "refused"}));
    EXPECT_EQ(states(run, "fused"), std::vector<std::string>{"refused"});
}

TEST_F(RunPythonTest, WorkersThatFailAreTakenBack) {
    need("python_torch");
    if (IsSkipped()) return;
    // The data set answers in the training process alone.
    folder_.file("picky.py",
                 "import os, torch\n"
                 "torch.manual_seed(1)\n"
                 "home = os.getpid()\n"
                 "class Picky(torch.utils.data.Dataset):\n"
                 "    def __len__(self): return 240\n"
                 "    def __getitem__(self, i):\n"
                 "        if os.getpid() != home: raise RuntimeError('not here')\n"
                 "        torch.randn(4000).sort()\n"
                 "        return torch.full((4,), float(i))\n"
                 "model = torch.nn.Linear(4, 1)\n"
                 "opt = torch.optim.SGD(model.parameters(), lr=1e-6)\n"
                 "total = 0.0\n"
                 "for batch in torch.utils.data.DataLoader(Picky(), batch_size=8):\n"
                 "    loss = model(batch).mean(); opt.zero_grad(); loss.backward(); opt.step()\n"
                 "    total += float(batch[0, 0])\n"
                 "print(total, len(os.listdir('.')) > 0)\n");
    Ran alone = plain({python_, "picky.py"});
    Ran ran = watched({python_, "picky.py"}, {"--profile", "off", "--apply", "num_workers=2"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, alone.out);
    EXPECT_THAT(ran.err, HasSubstr("saturate: --apply num_workers is taken back: a worker failed: "
                                   "RuntimeError: not here\n"));
    EXPECT_EQ(states(record(), "num_workers"), (std::vector<std::string>{"applied", "taken back"}));
}

TEST_F(RunPythonTest, EveryRankHasARecord) {
    need("python_torch");
    if (IsSkipped()) return;
    expect_same(script("ddp.py"));
    EXPECT_EQ(record().steps.size(), 32u);
    EXPECT_EQ(record().info.rank, 0);
    EXPECT_EQ(record().info.world_size, 2);
    EXPECT_EQ(record("r/rank1").steps.size(), 32u);
    EXPECT_EQ(record("r/rank1").info.rank, 1);
    EXPECT_EQ(record().python["parallel"]["DistributedDataParallel"].integer(), 1);
}

TEST_F(RunPythonTest, TorchrunIsSeenThrough) {
    need("python_torch");
    if (IsSkipped()) return;
    Ran ran = watched({python_, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                       "2", std::string(kSource) + "/tests/python/scripts/ddp.py"},
                      {"--profile", "off"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("loss 0."));
    EXPECT_EQ(record().steps.size(), 32u);
    EXPECT_EQ(record("r/rank1").steps.size(), 32u);
}

TEST_F(RunPythonTest, AWindowOfTheProfilerComesThroughTheSocket) {
    need("python_torch");
    if (IsSkipped()) return;
    Ran ran = watched(script("until_traced.py"));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "traced\n");
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / "r/trace.json.gz"));
    Ran trace =
        run({SATURATE_BINARY, "diagnose", "r/trace.json.gz", "--json"}, {.folder = folder_.path()});
    EXPECT_GT(Json::parse(trace.out, "stdout")["steps"].integer(), 10) << trace.err;
}

TEST_F(RunPythonTest, AnOlderTorchIsProfiledFromInside) {
    need("python_torch");
    if (IsSkipped()) return;
    Ran ran = watched(script("until_traced.py", {"old"}), {"--profile", "12"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "traced\n");
    Ran trace =
        run({SATURATE_BINARY, "diagnose", "r/trace.json.gz", "--json"}, {.folder = folder_.path()});
    EXPECT_NEAR(
        static_cast<double>(Json::parse(trace.out, "stdout")["steps"].integer().value_or(0)), 12, 2)
        << trace.err;
}

TEST_F(RunPythonTest, AutoAppliesWhatAFindingAsksForAndSaysHowToKeepIt) {
    need("python_torch");
    if (IsSkipped()) return;
    Ran alone = plain(script("image_folder.py", {"images", "3"}));
    Ran ran = watched(script("image_folder.py", {"images", "3"}),
                      {"--profile", "off", "--apply", "auto"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, alone.out);
    EXPECT_EQ(states(record(), "num_workers"), std::vector<std::string>{"applied"});
    EXPECT_THAT(ran.err, HasSubstr("saturate: to make it last:\n"));
    EXPECT_THAT(ran.err, HasSubstr("image_folder.py:33 (<module>): DataLoader(..., num_workers="));
    EXPECT_THAT(ran.err, HasSubstr("saturate:     +loader = torch.utils.data.DataLoader(data, "
                                   "batch_size=8, shuffle=True, num_workers="));
}

TEST_F(RunPythonTest, AutoCutsBatchesOutOfTensorsInMemory) {
    need("python_torch");
    if (IsSkipped()) return;
    Ran alone = plain(script("plain_loop.py", {"weights.pt"}));
    Ran ran =
        watched(script("plain_loop.py", {"weights.pt"}), {"--profile", "off", "--apply", "auto"});
    EXPECT_EQ(ran.out, alone.out);
    RunRecord run = record();
    EXPECT_EQ(states(run, "batched_fetch"), std::vector<std::string>{"applied"});
    EXPECT_TRUE(states(run, "set_to_none").empty());  // its gain is not measured
}

TEST_F(RunPythonTest, AScriptThatIsWellFedHasNoFindingAndNothingApplied) {
    need("python_torch");
    if (IsSkipped()) return;
    Ran ran = watched(script("well_fed.py"), {"--profile", "off", "--apply", "auto"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    RunRecord run = record();
    for (const Json& change : run.python["changes"].items())
        EXPECT_NE(change["state"].string(), "applied") << ran.err;
    Json diagnosis = diagnosed();
    EXPECT_TRUE(diagnosis["findings"].items().empty()) << ran.err;
    EXPECT_THAT(ran.err, testing::Not(HasSubstr("to make it last")));
}

TEST_F(RunPythonTest, CtrlCEndsTheScriptInItsOwnWay) {
    need("python_torch");
    if (IsSkipped()) return;
    // Sent to run, which hands it on.
    folder_.file("loop.py",
                 "import os, signal, torch\n"
                 "model = torch.nn.Linear(4, 1)\n"
                 "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
                 "try:\n"
                 "    for i in range(10**9):\n"
                 "        model(torch.ones(2, 4)).mean().backward(); opt.step(); opt.zero_grad()\n"
                 "        if i == 50: os.kill(os.getppid(), signal.SIGINT)\n"
                 "except KeyboardInterrupt:\n"
                 "    print('saved'); raise SystemExit(7)\n");
    Ran ran = watched({python_, "loop.py"}, {"--profile", "off"});
    EXPECT_EQ(ran.out, "saved\n");
    EXPECT_EQ(ran.status, 7);
    EXPECT_EQ(record().summary->ended, "interrupted");
    EXPECT_GE(record().steps.size(), 49u);
}

TEST_F(RunPythonTest, TuneChangesWhatHasNoFlagAndFillsInWhatHas) {
    need("python_torch");
    if (IsSkipped()) return;
    environment_["SATURATE_CACHE"] = (folder_.path() / "cache").string();
    std::vector<std::string> words = {
        SATURATE_BINARY, "tune",  "--json",       "--quiet", "--budget",
        "60s",           "--set", "batch_size=4", "--max",   "8",
        "--device",      "cpu",   "-o",           "tuned",   "--"};
    for (const std::string& word : script("tune_me.py", {"{batch_size}"})) words.push_back(word);
    Ran ran = plain(words);
    ASSERT_EQ(ran.status, 0) << ran.err << ran.out;
    Json answer = Json::parse(ran.out, "stdout");
    EXPECT_TRUE(answer["settings"]["num_workers"].string()) << ran.out;
    EXPECT_TRUE(answer["proof"]["before"]["median"].number()) << ran.out;
    // Each trial is a run record; the first is the script as it stands.
    RunRecord first = record("tuned/trial-1");
    EXPECT_EQ(first.steps.at(0).samples, 4);
    EXPECT_EQ(first.python["loaders"].items()[0]["num_workers"].integer(), 0);
}

TEST_F(RunPythonTest, AStepLimitKeepsTheFacts) {
    need("python_torch");
    if (IsSkipped()) return;
    Ran ran = watched(script("image_folder.py", {"images", "100"}),
                      {"--profile", "off", "--steps", "30"});
    EXPECT_EQ(ran.status, 124) << ran.err;
    EXPECT_GE(record().steps.size(), 30u);
    EXPECT_FALSE(record().python["loaders"].items().empty());
}

TEST_F(RunPythonTest, AnExceptionAndItsStatusStayTheScripts) {
    need("python_torch");
    if (IsSkipped()) return;
    std::vector<std::string> command = {
        python_, "-c", "import torch; raise SystemExit(torch.ones(3).sum().item())"};
    EXPECT_EQ(watched(command, {"--profile", "off"}).status, plain(command).status);
}

TEST_F(RunPythonTest, LightningsTrainerIsWatched) {
    need("python_frameworks");
    if (IsSkipped()) return;
    expect_same(script("lightning_fit.py"));
    RunRecord run = record();
    EXPECT_EQ(run.steps.size(), 80u);
    EXPECT_EQ(events(run, EventKind::evaluation), 2);
    EXPECT_EQ(run.python["loaders"].items()[0]["site"]["line"].integer(), 40);
}

TEST_F(RunPythonTest, TransformersTrainerIsWatched) {
    need("python_frameworks");
    if (IsSkipped()) return;
    Ran alone = plain(script("hf_trainer.py", {"out"}));
    Ran ran = watched(script("hf_trainer.py", {"out"}), {"--profile", "off"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    // The line above it tells run times.
    auto last = [](const std::string& text) { return text.substr(text.rfind("loss ")); };
    EXPECT_EQ(last(ran.out), last(alone.out));
    EXPECT_GE(record().steps.size(),
              38u);  // the last batch of an epoch comes after the loader's end
    EXPECT_EQ(events(record(), EventKind::evaluation), 0);
}

TEST_F(RunPythonTest, AcceleratesLoaderStaysTheUsers) {
    need("python_frameworks");
    if (IsSkipped()) return;
    expect_same(script("accelerate_loop.py"));
    RunRecord run = record();
    EXPECT_NEAR(static_cast<double>(run.steps.size()), 40, 2);
    ASSERT_EQ(run.python["loaders"].items().size(), 1u);
    EXPECT_EQ(run.python["loaders"].items()[0]["site"]["line"].integer(), 13);
}

TEST_F(RunPythonTest, AcceleratesLauncherHasARecordPerRank) {
    need("python_frameworks");
    if (IsSkipped()) return;
    environment_["ACCELERATE_USE_CPU"] = "1";  // --multi_gpu alone starts several processes
    environment_["OMP_NUM_THREADS"] = "1";
    std::vector<std::string> command = {
        python_,
        "-m",
        "accelerate.commands.accelerate_cli",
        "launch",
        "--multi_gpu",
        "--num_processes",
        "2",
        "--num_machines",
        "1",
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
        "--main_process_port",
        "0",
        std::string(kSource) + "/tests/python/scripts/accelerate_loop.py"};
    Ran alone = plain(command), ran = watched(command, {"--profile", "off"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    auto lines = [](const std::string& text) {  // either rank may come first
        std::vector<std::string> out;
        for (std::string_view line : split(text, '\n')) out.emplace_back(line);
        std::ranges::sort(out);
        return out;
    };
    EXPECT_EQ(lines(ran.out), lines(alone.out));
    for (const char* name : {"r", "r/rank1"}) {
        RunRecord run = record(name);
        EXPECT_NEAR(static_cast<double>(run.steps.size()), 20, 2) << name;
        EXPECT_EQ(run.info.world_size, 2);
        EXPECT_EQ(run.info.rank, std::string(name) == "r" ? 0 : 1);
    }
}

}  // namespace
}  // namespace saturate
