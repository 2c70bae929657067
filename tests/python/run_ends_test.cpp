// SPDX-License-Identifier: Apache-2.0
// How scripts end, and what may happen to them meanwhile: their status is their own. Needs PyTorch
// (tests/support/python_torch --make).
#include "python/run_python.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::Not;

class RunEndsTest : public RunPythonTest {
  protected:
    void SetUp() override { need("python_torch"); }
};

TEST_F(RunEndsTest, AScriptThatEndsInsideTheWindowKeepsItsStatus) {
    Ran ran = watched(script("ends_in_window.py"));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "open\n");
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / "r/trace.json.gz")) << ran.err;
}

TEST_F(RunEndsTest, AScriptThatProfilesItselfWaitsForTheWindow) {
    Ran ran = watched(script("ends_in_window.py", {"own"}));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "open\nclosed\nprofiled True\n");
}

TEST_F(RunEndsTest, BesideAProfilerOfTheScriptsOwnThereIsNoWindow) {
    folder_.file("scheduled.py",
                 "import time, torch\n"
                 "model = torch.nn.Linear(4, 1)\n"
                 "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
                 "schedule = torch.profiler.schedule(wait=10**9, warmup=1, active=1)\n"
                 "began = time.monotonic()\n"
                 "with torch.profiler.profile(schedule=schedule) as profile:\n"
                 "    while time.monotonic() - began < 8:\n"
                 "        model(torch.ones(2, 4)).mean().backward(); opt.step(); opt.zero_grad()\n"
                 "        profile.step()\n"
                 "print('done')\n");
    Ran ran = watched({python_, "scheduled.py"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "done\n");
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "r/trace.json.gz"));
    EXPECT_THAT(ran.err, HasSubstr("no profiler window: the script runs its own profiler\n"));
}

TEST_F(RunEndsTest, StepsGoOnAfterExec) {
    folder_.file(
        "again.py",
        "import os, sys, torch\n"
        "model = torch.nn.Linear(4, 1)\n"
        "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
        "for i in range(21):\n"
        "    model(torch.ones(2, 4)).mean().backward(); opt.step(); opt.zero_grad()\n"
        "if len(sys.argv) == 1: os.execv(sys.executable, [sys.executable, __file__, 'x'])\n"
        "print('done')\n");
    for (const char* hooks : {"native", "python"}) {
        environment_["SATURATE_SHIM"] = hooks;
        Ran ran = watched({python_, "again.py"}, {"--profile", "off"});
        EXPECT_EQ(ran.out, "done\n") << ran.err;
        EXPECT_EQ(record().steps.size(), 40u) << hooks;
        std::filesystem::remove_all(folder_.path() / "r");
    }
}

TEST_F(RunEndsTest, TrainingInAThreadIsSeen) {
    folder_.file("thread.py",
                 "import threading, torch\n"
                 "data = torch.utils.data.TensorDataset(torch.ones(160, 4))\n"
                 "model = torch.nn.Linear(4, 1)\n"
                 "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
                 "def train():\n"
                 "    for batch, in torch.utils.data.DataLoader(data, batch_size=8):\n"
                 "        model(batch).mean().backward(); opt.step(); opt.zero_grad()\n"
                 "thread = threading.Thread(target=train)\n"
                 "thread.start(); thread.join()\n");
    for (const char* hooks : {"native", "python"}) {
        environment_["SATURATE_SHIM"] = hooks;
        Ran ran = watched({python_, "thread.py"}, {"--profile", "off"});
        EXPECT_EQ(ran.status, 0) << ran.err;
        RunRecord run = record();
        EXPECT_EQ(run.steps.size(), 19u) << hooks;  // that the thread trains the first one told
        EXPECT_EQ(run.steps[0].samples, 8);
        ASSERT_EQ(run.python["loaders"].items().size(), 1u) << hooks;
        EXPECT_EQ(run.python["loaders"].items()[0]["site"]["line"].integer(), 6);
        std::filesystem::remove_all(folder_.path() / "r");
    }
}

TEST_F(RunEndsTest, AScriptThatRaisesBeforeItsFirstStepIsStillPyTorch) {
    Ran ran = watched({python_, "-c", "import torch; raise ValueError('early')"});
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.err, HasSubstr("no training step seen from inside: PyTorch 2."));
    EXPECT_THAT(ran.err, Not(HasSubstr("not Python 3.9 or newer with PyTorch")));
}

TEST_F(RunEndsTest, WithoutRoomForStepsTheScriptGoesOn) {
    if (run({"unshare", "-rm", "true"}).status != 0)
        GTEST_SKIP() << "no mount of our own can be made here (unshare -rm)";
    folder_.file(
        "loop.py",
        "import os, torch\n"
        "with open(os.path.join(os.environ['TMPDIR'], 'fill'), 'wb', buffering=0) as fill:\n"
        "    try:\n"
        "        while True: fill.write(bytes(4096))\n"
        "    except OSError: pass\n"
        "model = torch.nn.Linear(4, 1)\n"
        "opt = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
        "for i in range(50):\n"
        "    model(torch.ones(2, 4)).mean().backward(); opt.step(); opt.zero_grad()\n"
        "print('done')\n");
    folder_.file("small.sh", "mount -t tmpfs -o size=2m none small || exit 99\nexec \"$@\"\n");
    std::filesystem::create_directory(folder_.path() / "small");
    environment_["TMPDIR"] = (folder_.path() / "small").string();
    for (const char* hooks : {"native", "python"}) {
        environment_["SATURATE_SHIM"] = hooks;
        Ran ran = plain({"unshare", "-rm", "sh", "small.sh", SATURATE_BINARY, "run", "-o", "r",
                         "--", python_, "loop.py"});
        EXPECT_EQ(ran.status, 0) << ran.err;
        EXPECT_EQ(ran.out, "done\n");
        EXPECT_THAT(ran.err, HasSubstr("no longer watching from inside (")) << hooks;
        std::filesystem::remove_all(folder_.path() / "r");
    }
}

}  // namespace
}  // namespace saturate
