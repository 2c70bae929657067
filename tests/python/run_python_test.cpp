// SPDX-License-Identifier: Apache-2.0
// Scripts in the style of users' own: with run they print what they print without, and the record
// holds what they did. Needs PyTorch (tests/support/python_torch --make).
#include "python/run_python.h"

#include <filesystem>

namespace saturate {
namespace {

using testing::HasSubstr;

TEST_F(RunPythonTest, ASlowFolderIsNamedWithItsLineAndAnEdit) {
    need("python_torch");
    if (IsSkipped()) return;
    expect_same(script("image_folder.py", {"images", "1"}));
    Ran ran = run({SATURATE_BINARY, "diagnose", "r"}, {.folder = folder_.path()});
    EXPECT_THAT(ran.out, HasSubstr("1. F01 waiting for data"));
    EXPECT_THAT(ran.out, HasSubstr("also: F02 loader runs in the training process"));
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
    Ran ran = watched(script("plain_loop.py", {"weights.pt"}),
                      {"--profile", "off", "--apply", "batched_fetch,num_workers=2,fused"});
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
    EXPECT_THAT(ran.err, HasSubstr("saturate: to keep these changes:\n"));
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
    EXPECT_THAT(ran.err, testing::Not(HasSubstr("to keep these changes")));
}

TEST_F(RunPythonTest, LossesThatAreKeptWithTheirGraphsAreCounted) {
    need("python_torch");
    if (IsSkipped()) return;
    for (bool detaches : {false, true}) {
        std::vector<std::string> arguments;
        if (detaches) arguments = {"detach"};
        ASSERT_EQ(watched(script("keeps_losses.py", arguments), {"--profile", "off"}).status, 0);
        Json losses = record().python["kept_losses"];
        std::int64_t kept = losses["with_graph"].integer().value_or(-1);
        EXPECT_GE(losses["of"].integer().value_or(0), 100);
        if (detaches)
            EXPECT_LE(kept, 2);  // that of the last step
        else
            EXPECT_GE(kept, 90);
        std::filesystem::remove_all(folder_.path() / "r");
    }
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
        "90s",           "--set", "batch_size=4", "--max",   "8",
        "--device",      "cpu",   "-o",           "tuned",   "--"};
    for (const std::string& word : script("tune_me.py", {"{batch_size}"})) words.push_back(word);
    Ran ran = plain(words);
    // How many pairs of runs fit depends on how busy this machine is.
    ASSERT_TRUE(ran.status == 0 || ran.status == 1) << ran.err << ran.out;
    Json answer = Json::parse(ran.out, "stdout");
    // What is kept and proven depends on that too: see search_test and conductor_test.
    EXPECT_TRUE(answer["baseline"].is_object()) << ran.out;
    // Each trial is a run record; the first is the script as it stands.
    RunRecord first = record("tuned/trial-1");
    EXPECT_EQ(first.steps.at(0).samples, 4);
    EXPECT_EQ(first.python["loaders"].items()[0]["num_workers"].integer(), 0);
}

// The user's own program and its own file: each trial reads a copy, the file itself stays.
TEST_F(RunPythonTest, OptimizeMeasuresACommandWithItsConfiguration) {
    need("python_torch");
    if (IsSkipped()) return;
    environment_["SATURATE_CACHE"] = (folder_.path() / "cache").string();
    std::string text = "batch_size: 4\nnum_workers: 0\nclip: 1  # theirs\n";
    folder_.file("c.yaml", text);
    std::vector<std::string> words = {
        SATURATE_BINARY, "optimize", "--config", "c.yaml", "--benchmark", "--json", "--quiet",
        "--budget",      "150s",     "--max",    "8",      "--device",    "cpu",    "--"};
    for (const std::string& word : script("tune_me.py", {"{config}"})) words.push_back(word);
    Ran ran = plain(words);
    ASSERT_TRUE(ran.status == 0 || ran.status == 1) << ran.err << ran.out;
    Json answer = Json::parse(ran.out, "stdout");
    EXPECT_TRUE(answer["settings"]["num_workers"].string()) << ran.out;
    for (const Json& trial : answer["trials"].items()) {
        for (const auto& [key, value] : trial["change"].members())
            EXPECT_TRUE(key == "num_workers" || key == "batch_size") << key;
    }
    EXPECT_EQ(read_file(folder_.path() / "c.yaml", 1 << 20, "a file"), text);
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

}  // namespace
}  // namespace saturate
