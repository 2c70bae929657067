// SPDX-License-Identifier: Apache-2.0
// optimize as a user runs it: what it writes, what it refuses, and that nothing is lost.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class OptimizeCliTest : public testing::Test {
  protected:
    Ran optimize(std::vector<std::string> more) {
        std::vector<std::string> command{SATURATE_BINARY, "optimize", "--gpu", "RTX 4090"};
        command.insert(command.end(), more.begin(), more.end());
        return run(command, {.folder = folder.path()});
    }
    [[nodiscard]] std::string content(const std::string& name) const {
        return read_file(folder.path() / name, 1 << 20, "a file");
    }
    [[nodiscard]] std::vector<std::string> files() const {
        std::vector<std::string> out;
        for (const auto& entry : fs::directory_iterator(folder.path()))
            out.push_back(entry.path().filename());
        std::sort(out.begin(), out.end());
        return out;
    }
    TemporaryFolder folder;
};

TEST_F(OptimizeCliTest, WritesBesideTheInputAndLeavesItAlone) {
    folder.file("job.yaml", "num_workers: 0\n");
    Ran ran = optimize({"--config", "job.yaml"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(content("job.yaml"), "num_workers: 0\n");
    EXPECT_THAT(content("job_gpu_optimized.yaml"),
                HasSubstr("num_workers: 8  # saturate: was 0; half of the 16 cores"));
    EXPECT_EQ(files(), (std::vector<std::string>{"job.yaml", "job_gpu_optimized.yaml"}));
}

TEST_F(OptimizeCliTest, InPlaceLeavesABackupThatASecondRunDoesNotTouch) {
    fs::path file = folder.file("job.yaml", "num_workers: 0\n");
    fs::permissions(file, fs::perms(0640));
    EXPECT_EQ(optimize({"--config", "job.yaml", "--in-place"}).status, 0);
    EXPECT_EQ(content("job.yaml.bak"), "num_workers: 0\n");
    EXPECT_THAT(content("job.yaml"), HasSubstr("num_workers: 8"));
    EXPECT_EQ(fs::status(file).permissions(), fs::perms(0640));
    folder.file("job.yaml", "num_workers: 1\n");
    EXPECT_EQ(optimize({"--config", "job.yaml", "--in-place"}).status, 0);
    EXPECT_EQ(content("job.yaml.bak"), "num_workers: 0\n");
    EXPECT_EQ(content("job.yaml.bak.1"), "num_workers: 1\n");
}

TEST_F(OptimizeCliTest, DryRunWritesNothing) {
    folder.file("job.yaml", "num_workers: 0\n");
    EXPECT_THAT(optimize({"--config", "job.yaml", "--dry-run"}).out,
                HasSubstr("nothing written (--dry-run)"));
    EXPECT_EQ(files(), (std::vector<std::string>{"job.yaml"}));
}

TEST_F(OptimizeCliTest, JsonHasWhatIsPromised) {
    folder.file("job.yaml", "amp: true\nnum_workers: 99\n");
    Ran ran = optimize({"--config", "job.yaml", "--json"});
    Json json = Json::parse(ran.out, "stdout");
    EXPECT_EQ(json.members()[0].first, "schema");
    EXPECT_EQ(json["input"].string(), "job.yaml");
    EXPECT_EQ(json["output"].string(), "job_gpu_optimized.yaml");
    EXPECT_EQ(json["dialect"].string(), "plain");
    EXPECT_EQ(json["gpu"].string(), "RTX 4090");
    EXPECT_EQ(json["warnings"].items().size(), 1u);
    EXPECT_FALSE(json["advice"].items().empty());
    ASSERT_FALSE(json["changes"].items().empty());
    const Json& change = json["changes"].items()[0];
    EXPECT_EQ(change["key"].string(), "num_workers");
    EXPECT_EQ(change["line"].integer(), 2);
    EXPECT_EQ(change["before"].string(), "99");
    EXPECT_EQ(change["after"].string(), "8");
    EXPECT_EQ(change["level"].string(), "safe");
}

// Ours, and those that docs/settings.md has a table of names for.
std::string documented_dialects() {
    std::string out = "saturate",
                page = read_file(SATURATE_SOURCE_DIR "/docs/settings.md", 1 << 20, "a page");
    for (std::string_view line : split(page, '\n')) {
        if (line.starts_with("### ")) out.append(", ").append(line.substr(4));
    }
    return out;
}

TEST_F(OptimizeCliTest, MistakesOfTheUserExitWithTwoAndLeaveNothingBehind) {
    folder.file("ok.yaml", "num_workers: 0\n");
    folder.file("wrong.yaml", "job: sequence\nbatch_size: -1\nnum_workers: lots\n");
    folder.file("pod.yaml", "apiVersion: v1\nkind: Pod\nspec: {replicas: 2}\n");
    fs::create_directory(folder.path() / "folder");
    std::vector<std::string> before = files();
    struct Case {
        std::vector<std::string> words;
        std::string said;
    };
    const Case cases[] = {
        {{"--config", "none.yaml"},
         "error: none.yaml: cannot be read: No such file or directory\n"
         "  expected: a configuration that exists and is readable\n"},
        {{"--config", "folder"},
         "error: folder: is a directory\n  expected: a configuration, one file\n"},
        {{"--config", "ok.yaml", "-o", "ok.yaml"},
         "error: ok.yaml: the output is the input\n"
         "  expected: another file\n"
         "  fix:      --in-place rewrites the input and leaves a backup\n"},
        {{"--config", "ok.yaml", "-o", "no/such/out.yaml"},
         "error: no/such/out.yaml: cannot be written: No such file or directory\n"
         "  expected: a folder that exists and that you can write to; nothing was changed\n"
         "  fix:      mkdir -p no/such\n"},
        {{"--config", "ok.yaml", "--cores", "0"},
         "error: --cores is \"0\"\n  expected: a whole number from 1 to 100000\n"},
        {{"--config", "ok.yaml", "--in-place", "-o", "x.yaml"},
         "error: --in-place and --output together\n  expected: one of the two\n"},
        {{"--config", "wrong.yaml"},
         "error: wrong.yaml:2:13: batch_size is \"-1\"\n"
         "  expected: a whole number from 1 to 10000000\n"
         "  fix:      batch_size: 32\n"
         "error: wrong.yaml:3:14: num_workers is \"lots\"\n"
         "  expected: a whole number from 0 to 1024\n"
         "  fix:      num_workers: auto\n"},
        {{"--config", "pod.yaml"},
         "error: pod.yaml: not a training configuration: it has none of the settings of "
         "docs/settings.md\n  expected: keys such as batch_size, num_workers or learning_rate\n  "
         "fix:      name the file that your training reads\n"},
        {{"--config", "ok.yaml", "--dialect", "lightnin"},
         "error: --dialect is \"lightnin\"\n"
         "  expected: " +
             documented_dialects() + "\n  fix:      --dialect lightning\n"},
    };
    for (const Case& c : cases) {
        Ran ran = optimize(c.words);
        EXPECT_EQ(ran.status, 2);
        EXPECT_EQ(ran.err, c.said);
        EXPECT_EQ(ran.out, "");
    }
    EXPECT_EQ(files(), before);
}

TEST_F(OptimizeCliTest, ASecondRunChangesNothing) {
    folder.file("job.yaml", "job: sequence\nhidden_size: 64\nbatch_size: 32\nlr: 0.001\n");
    EXPECT_EQ(optimize({"--config", "job.yaml", "-o", "a.yaml"}).status, 0);
    EXPECT_THAT(content("a.yaml"), HasSubstr("batch_size: 512"));
    EXPECT_THAT(optimize({"--config", "a.yaml"}).out, HasSubstr("Nothing to change."));
    EXPECT_EQ(files(), (std::vector<std::string>{"a.yaml", "job.yaml"}));
}

TEST_F(OptimizeCliTest, NothingIsAddedThatNobodyIsSeenToRead) {
    folder.file("job.yaml", "num_workers: 0\namp: false\n");
    Ran ran = optimize({"--config", "job.yaml"});
    EXPECT_THAT(ran.out, HasSubstr("Not in the file, and not added"));
    EXPECT_THAT(ran.out, HasSubstr("pin_memory: true"));
    EXPECT_EQ(content("job_gpu_optimized.yaml").find("pin_memory"), std::string::npos);
    EXPECT_THAT(content("job_gpu_optimized.yaml"), HasSubstr("amp: true  # saturate: was false"));
}

TEST_F(OptimizeCliTest, OneOddValueRefusesNoFile) {
    folder.file("odd.toml", "batch_size = 0x8\nnum_workers = 1_000\ntrain_size = 0.8\n");
    Ran ran = optimize({"--config", "odd.toml"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(content("odd_gpu_optimized.toml"), HasSubstr("num_workers = 8"));
    EXPECT_THAT(ran.out, HasSubstr("train_size is \"0.8\": not a whole number"));
}

TEST_F(OptimizeCliTest, AFullDiskExitsWithThree) {
    folder.file("ok.yaml", "num_workers: 0\n");
    Ran ran = optimize({"--config", "ok.yaml", "-o", "/dev/full"});
    EXPECT_EQ(ran.status, 3);
    EXPECT_THAT(ran.err, HasSubstr("No space left on device"));
}

TEST_F(OptimizeCliTest, WhatCannotBeEditedExactlyIsSaidAndTheRestIsDone) {
    folder.file("job.yaml", "shared: &loader\n  num_workers: 0\na: *loader\nlog_interval: 1\n");
    Ran ran = optimize({"--config", "job.yaml"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("shared.num_workers: 8 is not written, because"));
    EXPECT_THAT(content("job_gpu_optimized.yaml"),
                HasSubstr("shared: &loader\n  num_workers: 0\na: *loader\nlog_interval: 50  #"));
}

TEST_F(OptimizeCliTest, OptimisesForTheCpuWhenAsked) {
    folder.file("job.yaml", "pin_memory: true\n");
    Ran ran =
        run({SATURATE_BINARY, "optimize", "--config", "job.yaml", "--gpu", "cpu", "--cores", "4"},
            {.folder = folder.path()});
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.out, HasSubstr("for the CPU; 4 cores"));
    EXPECT_THAT(ran.out, HasSubstr("there is no GPU to pin memory for"));
}

TEST_F(OptimizeCliTest, AGpuThatIsNotInTheTableIsAnswered) {
    folder.file("job.yaml", "num_workers: 0\n");
    Ran ran = run({SATURATE_BINARY, "optimize", "--config", "job.yaml", "--gpu", "RTX 4090 Pocket"},
                  {.folder = folder.path()});
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(ran.err, testing::StartsWith("error: no GPU \"RTX 4090 Pocket\" in the table\n"
                                             "  expected: cpu, or a name of docs/gpus.md, "));
    EXPECT_THAT(ran.err, testing::EndsWith("\n  fix:      --gpu \"RTX 4090\"\n"));
    ran = run({SATURATE_BINARY, "optimize", "--config", "job.yaml", "--gpu", "toaster"},
              {.folder = folder.path()});
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(ran.err, testing::Not(HasSubstr("fix:")));
    EXPECT_EQ(files(), (std::vector<std::string>{"job.yaml"}));
}

// A project whose program reads its file in three ways: a key that must be there, one with a
// default, and none at all.
constexpr const char* kProgram = R"(import argparse
import torch
import yaml
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--config", default="c.yaml")
args = parser.parse_args()
config = yaml.safe_load(open(args.config))
loader = DataLoader(Rows(), batch_size=config["batch_size"], num_workers=config["num_workers"],
                    pin_memory=config.get("pin_memory", False))
model = torch.nn.Linear(8, 2).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"], fused=config.get("fused", "no"))
for epoch in range(config["epochs"]):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
)";
constexpr const char* kRead =
    "batch_size: 32\nnum_workers: 0\nlr: 0.1\nepochs: 5\nprefetch_factor: 1\n";

TEST_F(OptimizeCliTest, AddsOnlyKeysThatTheProgramReads) {
    folder.file("train.py", kProgram);
    folder.file("c.yaml", kRead);
    Ran ran = optimize({"--config", "c.yaml", "-o", "-"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("pin_memory: true"));
    EXPECT_THAT(ran.out, HasSubstr("train.py:11 reads it"));
    for (const char* unread : {"persistent_workers", "tf32", "compile", "precision", "fused"})
        EXPECT_THAT(ran.out, Not(HasSubstr(fmt::format("\n{}", unread)))) << unread;
    EXPECT_THAT(ran.out, HasSubstr("\nprefetch_factor: 1\n"));  // nobody reads it
    EXPECT_THAT(ran.err, HasSubstr("read by train.py"));
    EXPECT_THAT(ran.err, HasSubstr("c.yaml:5: prefetch_factor has no effect"));
    EXPECT_THAT(ran.err, HasSubstr("because your program does not read them"));
}

TEST_F(OptimizeCliTest, ACommandTellsWhichProgramReadsTheFile) {
    folder.file("train.py", kProgram);
    folder.file("elsewhere/job.yaml", kRead);
    Ran ran = optimize({"--config", "elsewhere/job.yaml", "--json", "--dry-run", "--", "python3",
                        "train.py", "--config", "{config}"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    Json json = Json::parse(ran.out, "stdout");
    EXPECT_EQ(json["read_by"].items().at(0).string(), "train.py");
    EXPECT_EQ(optimize({"--config", "elsewhere/job.yaml", "--", "ls"}).status, 2);
}

TEST_F(OptimizeCliTest, AFrameworkThatTheProgramDoesNotUseIsNotItsDialect) {
    // Two names of Hugging Face's in a file of a program that knows nothing of it.
    const std::string file = "per_device_train_batch_size: 8\ngradient_accumulation_steps: 2\n";
    folder.file("c.yaml", file);
    Ran alone = optimize({"--config", "c.yaml", "--json", "--dry-run"});
    EXPECT_EQ(Json::parse(alone.out, "stdout")["dialect"].string(), "hf_trainer");
    std::string program = kProgram;
    for (const char* name : {"\"batch_size\"", "\"num_workers\""})
        program.replace(program.find(name), std::string(name).size(),
                        std::string(name) == "\"batch_size\"" ? "\"per_device_train_batch_size\""
                                                              : "\"gradient_accumulation_steps\"");
    folder.file("train.py", program);
    Ran beside = optimize({"--config", "c.yaml", "--json", "--dry-run"});
    EXPECT_EQ(Json::parse(beside.out, "stdout")["dialect"].string(), "plain") << beside.out;
    folder.file("train.py", "import transformers\n" + program);
    Ran with_it = optimize({"--config", "c.yaml", "--json", "--dry-run"});
    EXPECT_EQ(Json::parse(with_it.out, "stdout")["dialect"].string(), "hf_trainer");
}

}  // namespace
}  // namespace saturate
