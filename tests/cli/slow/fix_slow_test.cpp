// SPDX-License-Identifier: Apache-2.0
// `fix` on real runs of PyTorch: a proof, traps, twenty ends at different moments after which the
// project is as it was or wholly written and no process, mount or temporary file is left, and a
// script with nothing to gain.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> files_below(const fs::path& folder) {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        out[entry.path().lexically_relative(folder)] =
            entry.is_regular_file() ? read_if_there(entry.path()) : "a folder";
    return out;
}

class FixSlowTest : public testing::Test {
  protected:
    void SetUp() override {
        Ran found = run({SATURATE_SOURCE_DIR "/tests/support/python_torch"});
        if (found.status != 0) GTEST_SKIP() << found.err;
        python_ = trim(found.out);
        for (const char* name : {"train.py", "data.py", "config.json"})
            fs::copy_file(fs::path(SATURATE_SOURCE_DIR) / "examples/pictures" / name,
                          project_.path() / name);
        Ran made = run({python_, "-B", "-c", "from data import *; make_pictures('pictures')"},
                       {.folder = project_.path()});
        ASSERT_EQ(made.status, 0) << made.err;
    }
    // Everything that comes of it holds the pipe that it prints to: this returns after the last is
    // gone.
    Ran fix(const std::string& before, const std::string& name, const std::string& budget) {
        return run({"bash", "-c", "set -o pipefail; " + before + " \"$@\" 9>&1 | cat", "bash",
                    SATURATE_BINARY, "fix", "--write", "--budget", budget, "-o",
                    (out_.path() / name).string(), "--", python_, "train.py"},
                   {.folder = project_.path(),
                    .environment = {{"TMPDIR", temporary_.path().string()},
                                    {"SATURATE_CACHE", cache_.path().string()}}});
    }
    std::string python_;
    TemporaryFolder project_, out_, temporary_, cache_;
};

TEST_F(FixSlowTest, EndedAtAnyMomentItLeavesNothing) {
    auto was = files_below(project_.path());
    for (int i = 0; i < 20; ++i) {
        const char* signal = i % 3 == 0 ? "INT" : "KILL";
        SCOPED_TRACE(fmt::format("SIG{} after {} s", signal, 1 + 2 * i));
        std::string name = std::to_string(i);
        fix(fmt::format("timeout --foreground -k 20 -s {} {}", signal, 1 + 2 * i), name, "45s");
        EXPECT_TRUE(fs::is_empty(temporary_.path()));
        if (fs::exists(out_.path() / name / "before")) {
            Ran back = run({"patch", "-p1", "-R", "-s", "-i", out_.path() / name / "fix.patch"},
                           {.folder = project_.path()});
            EXPECT_EQ(back.status, 0) << back.out;
        }
        ASSERT_EQ(files_below(project_.path()), was);
    }
}

TEST_F(FixSlowTest, TheExampleIsProvenFasterAndWritten) {
    std::string config = read_if_there(project_.path() / "config.json");
    Ran ran = fix("", "out", "240s");
    ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
    Json json = Json::parse(read_if_there(out_.path() / "out/fix.json"), "fix.json");
    EXPECT_EQ(json["proof"]["verdict"].string(), "faster");
    std::string losses = json["loss_guard"].string().value_or("");
    EXPECT_TRUE(losses.starts_with("the losses of the first") && losses.ends_with("are the same"))
        << losses;
    EXPECT_GT(json["baseline"]["input_wait_percent"].number().value_or(0), 50);
    EXPECT_EQ(read_if_there(out_.path() / "out/before/config.json"), config);
    EXPECT_NE(read_if_there(project_.path() / "config.json"), config);
}

// Ctrl-C before the first pair is done.
TEST_F(FixSlowTest, AProofThatIsInterruptedDisprovesNothing) {
    Ran ran = run({"bash", "-c",
                   "set -m; \"$@\" 2>log & pid=$!; until grep -q 'proving it' log; do "
                   "kill -0 $pid || exit 99; sleep 0.1; done; kill -INT $pid; wait $pid",
                   "bash", SATURATE_BINARY, "fix", "--budget", "240s", "-o",
                   (out_.path() / "out").string(), "--", python_, "train.py"},
                  {.folder = project_.path(),
                   .environment = {{"TMPDIR", temporary_.path().string()},
                                   {"SATURATE_CACHE", cache_.path().string()}}});
    EXPECT_EQ(ran.status, 130) << ran.out << ran.err;
    EXPECT_NE(ran.out.find("(you interrupted the proof)"), std::string::npos) << ran.out;
}

// Workers break every step of it, and it goes on to the next: fast, and no training.
TEST_F(FixSlowTest, StepsThatFailInSilenceAreNoGain) {
    project_.file("train.py", R"py(import time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Late(Dataset):
    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.full((16,), index / 65536), torch.tensor(int(get_worker_info() is not None))


def main():
    torch.manual_seed(1)
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Late(), batch_size=16, num_workers=0)
    for x, is_worker in loader:
        try:
            if is_worker.any():
                raise RuntimeError("not in a worker")
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        except RuntimeError:
            continue


if __name__ == "__main__":
    main()
)py");
    Ran ran = fix("", "out", "120s");
    EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
    EXPECT_FALSE(fs::exists(out_.path() / "out/fix.patch"));
    Json json = Json::parse(read_if_there(out_.path() / "out/fix.json"), "fix.json");
    for (const Json& proposal : json["proposals"].items())
        EXPECT_NE(proposal["outcome"].string(), "kept") << proposal.line();
}

// Four readers of one disk each wait longer than one alone: what the first run showed is too few.
TEST_F(FixSlowTest, WorkersAreAskedAgainWhetherTheyAreEnough) {
    project_.file("train.py", R"py(import time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

WORKERS = 0


class Remote(Dataset):
    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        time.sleep(0.006 if get_worker_info() is None else 0.016)
        return torch.full((16,), index / 65536)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in DataLoader(Remote(), batch_size=8, num_workers=WORKERS):
        time.sleep(0.03)  # a model
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
)py");
    Ran ran = fix("", "out", "5m");
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.err, testing::HasSubstr("the steps still wait for data: trying "));
    // By the first run, 1.2 x 48 / 30 ms, they are 2 or 3.
    std::string now = read_if_there(project_.path() / "train.py");
    std::size_t at = now.find("WORKERS = ");
    ASSERT_NE(at, std::string::npos);
    EXPECT_GT(now[at + 10], '4') << ran.out;
}

// What the time was too short for is not called slow: a longer budget is named.
TEST_F(FixSlowTest, ACompilerThatHadTooLittleTimeIsNotCalledSlow) {
    project_.file("train.py", R"py(import time
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)
        self.wait = 0

    def compile(self):
        self.wait = 1000

    def forward(self, x):
        time.sleep(self.wait)
        return self.layer(x)


torch.set_num_threads(1)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(1000000):
    loss = model(torch.rand(32, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
)py");
    Ran ran = run({SATURATE_BINARY, "fix", "--level", "numerics", "--budget", "40s", "-o",
                   (out_.path() / "out").string(), "--", python_, "train.py"},
                  {.folder = project_.path(),
                   .environment = {{"SATURATE_CACHE", cache_.path().string()}}});
    EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
    Json json = Json::parse(read_if_there(out_.path() / "out/fix.json"), "fix.json");
    bool has_compile = false;
    for (const Json& proposal : json["proposals"].items()) {
        if (proposal["setting"].string() != "compile") continue;
        has_compile = true;
        EXPECT_EQ(proposal["outcome"].string(), "not tried") << proposal.line();
    }
    EXPECT_TRUE(has_compile) << json.pretty();
    EXPECT_THAT(ran.out + ran.err, testing::HasSubstr("--budget 10m"));
}

// A script that waits for nothing gets no edit, ten times.
TEST_F(FixSlowTest, AWellWrittenScriptGetsNoEdit) {
    std::string script =
        read_if_there(fs::path(SATURATE_SOURCE_DIR) / "tests/python/scripts/well_fed.py");
    std::size_t at = script.find("range(2)");
    ASSERT_NE(at, std::string::npos);
    script.replace(at, 8, "range(500)");
    project_.file("train.py", script);
    auto was = files_below(project_.path());
    for (int i = 0; i < 10; ++i) {
        std::string name = std::to_string(i);
        Ran ran = fix("", name, "90s");
        EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
        EXPECT_FALSE(fs::exists(out_.path() / name / "fix.patch"));
    }
    EXPECT_EQ(files_below(project_.path()), was);
}

// One whose disk gives no more, whoever asks: workers are tried, and none of them is faster.
TEST_F(FixSlowTest, WhatOnlyTheDiskLimitsGetsNoEdit) {
    project_.file("train.py", read_if_there(fs::path(SATURATE_SOURCE_DIR) /
                                            "tests/python/scripts/busy_disk.py"));
    auto was = files_below(project_.path());
    for (int i = 0; i < 10; ++i) {
        std::string name = std::to_string(i);
        Ran ran = fix("", name, "2m");
        EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
        EXPECT_FALSE(fs::exists(out_.path() / name / "fix.patch"));
        Json json = Json::parse(read_if_there(out_.path() / name / "fix.json"), "fix.json");
        bool has_tried = false;
        for (const Json& proposal : json["proposals"].items())
            has_tried |= proposal["setting"].string() == "num_workers" &&
                         proposal["outcome"].string() != "not tried";
        EXPECT_TRUE(has_tried) << json.pretty();
    }
    EXPECT_EQ(files_below(project_.path()), was);
}

// Runs well for its first epoch, then asks: told as what it is, and nothing is tried.
TEST_F(FixSlowTest, OneThatAsksForInputLaterIsToldSo) {
    std::string script =
        read_if_there(fs::path(SATURATE_SOURCE_DIR) / "tests/python/scripts/busy_disk.py");
    std::size_t at = script.find("        print(\"epoch");
    ASSERT_NE(at, std::string::npos);
    script.insert(at, "        input('go on? ')\n");
    project_.file("train.py", script);
    Ran ran = fix("", "out", "60s");
    EXPECT_EQ(ran.status, 4) << ran.out << ran.err;
    EXPECT_NE(ran.err.find("it waits for keyboard input"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace saturate
