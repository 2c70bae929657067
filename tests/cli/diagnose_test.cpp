// SPDX-License-Identifier: Apache-2.0
// diagnose as a user runs it: exit codes, errors in full, --json, --apply.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

const std::string kTrace =
    std::string(SATURATE_SOURCE_DIR) + "/tests/golden/diagnosis/loader_bound/trace.json";

class DiagnoseCliTest : public testing::Test {
  protected:
    Ran diagnose(std::vector<std::string> more) {
        std::vector<std::string> command{SATURATE_BINARY, "diagnose"};
        command.insert(command.end(), more.begin(), more.end());
        return run(command, {.folder = folder.path()});
    }
    TemporaryFolder folder;
};

TEST_F(DiagnoseCliTest, JsonHoldsWhatTheDocsPromise) {
    Ran ran = diagnose({kTrace, "--json"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    Json json = Json::parse(ran.out, "stdout");
    EXPECT_EQ(json.members().front().first, "schema");
    for (const char* key :
         {"verdict", "window_ms", "steps", "busy_percent", "split_percent", "idle_percent",
          "findings", "total_gain", "replay_error_percent", "health", "dropped_events"})
        EXPECT_FALSE(json[key].is_null()) << key;
    EXPECT_EQ(json["busy_percent"].number(), 40);
    const Json& first = json["findings"].items().at(0);
    EXPECT_EQ(first["id"].string(), "F01");
    for (const char* key :
         {"name", "share_percent", "ms_per_step", "count", "confidence", "fix", "gain"})
        EXPECT_FALSE(first[key].is_null()) << key;
    EXPECT_GT(*first["gain"]["likely"].number(), 1.5);
}

TEST_F(DiagnoseCliTest, FailOnIsExitCodeOne) {
    EXPECT_EQ(diagnose({kTrace, "--fail-on", "50"}).status, 1);
    EXPECT_EQ(diagnose({kTrace, "--fail-on", "500"}).status, 0);
}

TEST_F(DiagnoseCliTest, SaysWhatIsWrongWithAnInput) {
    folder.file("other.json", "{\"a\": 1}");
    Ran ran = diagnose({"other.json"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: other.json: is JSON, but has no \"traceEvents\"\n"
              "  expected: a trace of the PyTorch profiler\n"
              "  fix:      saturate diagnose --how prints how to record one\n");
    EXPECT_EQ(diagnose({"missing.json"}).status, 2);
    EXPECT_EQ(diagnose({}).status, 2);
    Ran empty = diagnose({"."});
    EXPECT_EQ(empty.status, 2);
}

TEST_F(DiagnoseCliTest, ComparesTwoInputs) {
    Ran ran = diagnose({"--before", kTrace, "--after", kTrace});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("step: 1.0 ms to 1.0 ms, 1.000 times as fast"));
    EXPECT_THAT(ran.out, HasSubstr("F01 waiting for data: 59"));
    EXPECT_EQ(diagnose({"--before", kTrace}).status, 2);
}

TEST_F(DiagnoseCliTest, AppliesASettingToTheConfigurationAndKeepsTheOldOne) {
    std::filesystem::path file =
        folder.file("job.yaml", "batch_size: 32\nnum_workers: 0  # slow\n");
    Ran ran = diagnose({kTrace, "job.yaml", "--apply"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(read_file(file, 1 << 16, "a file"), HasSubstr("num_workers: 2"));
    EXPECT_EQ(read_file(file.string() + ".bak", 1 << 16, "a file"),
              "batch_size: 32\nnum_workers: 0  # slow\n");
    EXPECT_EQ(diagnose({kTrace, "--apply"}).status, 2);
}

TEST_F(DiagnoseCliTest, ReadsAProgramAndItsFolder) {
    folder.file("job/train.py",
                "import torch\nfrom torch.utils.data import DataLoader\n"
                "model = torch.nn.Linear(8, 2).cuda()\n"
                "optimizer = torch.optim.Adam(model.parameters())\n"
                "for epoch in range(3):\n    for x, y in DataLoader(Rows(), batch_size=8):\n"
                "        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())\n"
                "        optimizer.zero_grad()\n        loss.backward()\n"
                "        optimizer.step()\n        print(loss.item())\n");
    for (const char* operand : {"job/train.py", "job"}) {
        Ran ran = diagnose({operand});
        EXPECT_EQ(ran.status, 0) << ran.err;
        EXPECT_THAT(ran.out, HasSubstr("1 place waits for the GPU in every step"));
        EXPECT_THAT(ran.out, HasSubstr("train.py:11  loss: read for logging"));
        EXPECT_THAT(ran.out, HasSubstr("saturate fix -- python3"));
    }
    Ran json = diagnose({"job/train.py", "--json"});
    EXPECT_EQ(Json::parse(json.out, "stdout")["waits"].items().size(), 1);
    EXPECT_EQ(diagnose({"job/train.py", kTrace}).status, 2);
    EXPECT_EQ(diagnose({"missing.py"}).status, 2);
    folder.file("job/broken.py", "x = (\n");
    Ran broken = diagnose({"job/broken.py"});
    EXPECT_EQ(broken.status, 2);
    EXPECT_THAT(broken.err, HasSubstr("job/broken.py:1: syntax error"));
    folder.file("tools/list.py", "print(1)\n");
    EXPECT_THAT(diagnose({"tools"}).err, HasSubstr("no training program"));
}

TEST_F(DiagnoseCliTest, AKeyThatNothingReadsIsAFinding) {
    folder.file("train.py",
                "import torch, yaml\nconfig = yaml.safe_load(open('c.yaml'))\n"
                "optimizer = torch.optim.Adam(model.parameters(), lr=config['lr'])\n"
                "for i in range(config['steps']):\n    loss = model(i)\n    loss.backward()\n"
                "    optimizer.step()\n");
    folder.file("c.yaml", "lr: 0.1\nsteps: 9\nbatch_size: 8\npin_memory: true\n");
    Ran ran = diagnose({"c.yaml"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("c.yaml:4 sets pin_memory: nothing in this project reads it"));
}

// The command of the record names the file: nobody has to.
TEST_F(DiagnoseCliTest, ARunWhoseConfigurationHasAKeyWithoutEffect) {
    folder.file("train.py",
                "import sys, torch, yaml\nconfig = yaml.safe_load(open(sys.argv[2]))\n"
                "optimizer = torch.optim.Adam(model.parameters(), lr=config['lr'])\n"
                "for i in range(config['steps']):\n    loss = model(i)\n    loss.backward()\n"
                "    optimizer.step()\n");
    folder.file("c.yaml", "lr: 0.1\nsteps: 9\nbatch_size: 8\npin_memory: true\n");
    folder.file("record/run.json", R"({"schema":1,"kind":"run","device":"cpu",)"
                                   R"("command":["python3","train.py","--config","c.yaml"]})");
    Ran ran = diagnose({"record"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("c.yaml:4 sets pin_memory: nothing in this project reads it"));
    // What is read and not in force after all, the record alone knows.
    auto with_amp = [&](const std::string& use) {
        folder.file("c.yaml", "lr: 0.1\nsteps: 9\nbatch_size: 8\npin_memory: true\namp: true\n");
        folder.file("train.py",
                    "import sys, torch, yaml\nconfig = yaml.safe_load(open(sys.argv[2]))\n"
                    "optimizer = torch.optim.Adam(model.parameters(), lr=config['lr'])\n"
                    "for i in range(config['steps'] * config['batch_size']):\n"
                    "    with torch.autocast('cpu', enabled=" +
                        use +
                        "):\n        loss = model(i)\n    loss.backward()\n    optimizer.step()\n");
        return diagnose({"record", "--all"}).out;
    };
    EXPECT_THAT(with_amp("config['amp']"), Not(HasSubstr("c.yaml:5")));
    folder.file("record/python.json", R"({"steps":9,"flags":{"autocast":false},"loaders":[]})");
    EXPECT_THAT(with_amp("config['amp']"), HasSubstr("torch.autocast was never entered"));
    // What reading has told is not told again.
    std::string said = with_amp("config['amp'] == 'bf16'");
    EXPECT_THAT(said, HasSubstr("a boolean never equals that"));
    EXPECT_THAT(said, Not(HasSubstr("torch.autocast was never entered")));
    fs::remove(fs::path(folder.path()) / "c.yaml");
    EXPECT_THAT(diagnose({"record"}).out, Not(HasSubstr("pin_memory")));
}

// What holds the others up is told before what gains more.
TEST_F(DiagnoseCliTest, ALateRankIsTheFirstFinding) {
    for (int rank = 0; rank < 2; ++rank) {
        std::string name = rank == 0 ? "record" : "record/rank1";
        folder.file(name + "/run.json",
                    fmt::format(R"({{"schema":1,"kind":"run","device":"cpu","rank":{},)"
                                R"("world_size":2,"started_ns":0,"command":["python3","t.py"]}})",
                                rank));
        std::string steps;
        for (int i = 0; i < 60; ++i)
            steps += fmt::format(
                "{{\"step\": {}, \"t_ns\": {}, \"duration_ns\": 10000000, \"samples\": 8, "
                "\"input_wait_ns\": {}}}\n",
                i, i * 10'000'000, rank == 1 ? 8'000'000 : 100'000);
        folder.file(name + "/steps.jsonl", steps);
    }
    Ran ran = diagnose({"record", "--json"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(Json::parse(ran.out, "stdout")["findings"].items().at(0)["id"].string(), "F17");
}

TEST_F(DiagnoseCliTest, PrintsHowToRecord) {
    Ran ran = diagnose({"--how"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.out, HasSubstr("schedule(wait=1, warmup=1, active=6, repeat=1)"));
    EXPECT_THAT(ran.out, HasSubstr("with_stack=True, record_shapes=True"));
}

}  // namespace
}  // namespace saturate
