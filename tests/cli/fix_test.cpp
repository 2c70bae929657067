// SPDX-License-Identifier: Apache-2.0
// fix --dry-run as a user runs it: what it says, writes and leaves alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::Not;

const char* const kTrain = R"py(import argparse
import torch
from torch.utils.data import DataLoader
from data import Pictures

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--unused", type=int, default=3)
args = parser.parse_args()


def main():
    device = torch.device("cuda")
    model = torch.nn.Linear(8, 2).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(Pictures(), batch_size=32, shuffle=True,
                        num_workers=args.workers)  # all of them
    for epoch in range(3):
        total = 0.0
        for step, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            out = model(x)
            loss = torch.nn.functional.cross_entropy(out, y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total)


if __name__ == "__main__":
    main()
)py";

const char* const kData = R"py(import torch

open("imported", "w").write("a user's file must not be imported")


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.zeros(8), index % 2
)py";

struct Project {
    TemporaryFolder folder;
    Project() {
        folder.file("train.py", kTrain);
        folder.file("data.py", kData);
    }
    Ran fix(std::vector<std::string> words, const std::vector<std::string>& command) const {
        words.insert(words.begin(), {SATURATE_BINARY, "fix", "--dry-run"});
        words.push_back("--");
        words.insert(words.end(), command.begin(), command.end());
        return run(words, {.folder = folder.path()});
    }
};

TEST(FixTest, WritesAPatchThatGitAndPatchTake) {
    Project project;
    Ran ran = project.fix({"--json", "-o", "out"}, {"python3", "train.py"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    Json json = Json::parse(ran.out, "stdout");
    EXPECT_EQ(json["project"]["script"].string(), "train.py");
    EXPECT_EQ(json["patch"].string(), "out/fix.patch");
    for (const std::vector<std::string>& tool :
         {std::vector<std::string>{"git", "apply", "--check", "out/fix.patch"},
          std::vector<std::string>{"patch", "-p1", "-s", "-i", "out/fix.patch"}}) {
        Ran applied = run(tool, {.folder = project.folder.path()});
        EXPECT_EQ(applied.status, 0) << applied.out << applied.err;
    }
    std::string after = read_file(project.folder.path() / "train.py", 1 << 20, "the script");
    EXPECT_THAT(after, HasSubstr("\"--workers\", type=int, default="));
    EXPECT_THAT(after, Not(HasSubstr("\"--workers\", type=int, default=0)")));
    EXPECT_THAT(after, HasSubstr("pin_memory=True"));
    EXPECT_THAT(after, HasSubstr("x.to(device, non_blocking=True)"));
    EXPECT_THAT(after, HasSubstr("persistent_workers=args.workers > 0)  # all of them"));
    EXPECT_EQ(
        run({"python3", "-m", "py_compile", "train.py"}, {.folder = project.folder.path()}).status,
        0);
}

// Neither of them goes through a link.
TEST(FixTest, APatchNamesTheFileBehindALink) {
    TemporaryFolder folder;
    folder.file("train.py",
                "import json\n"
                "import torch\n"
                "from torch.utils.data import DataLoader\n"
                "config = json.load(open('config.json'))\n"
                "model = torch.nn.Linear(1, 1)\n"
                "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                "loader = DataLoader(Rows(), batch_size=4, num_workers=config['workers'])\n"
                "for x in loader:\n"
                "    model(x).sum().backward()\n"
                "    optimizer.step()\n");
    folder.file("configs/base.json", "{\"workers\": 0}\n");
    std::filesystem::create_symlink("configs/base.json", folder.path() / "config.json");
    Ran ran = run({SATURATE_BINARY, "fix", "--dry-run", "-o", "out", "--", "python3", "train.py"},
                  {.folder = folder.path()});
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    Ran applied = run({"patch", "-p1", "-s", "-i", "out/fix.patch"}, {.folder = folder.path()});
    EXPECT_EQ(applied.status, 0) << applied.out;
    EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "config.json"));
    EXPECT_THAT(read_file(folder.path() / "configs/base.json", 1 << 20, "the file"),
                Not(HasSubstr("\"workers\": 0")));
}

TEST(FixTest, SaysWhereLoadersOptimizersAndStepsAre) {
    Project project;
    std::string text = kTrain;
    text.replace(text.find("    loader = "), 0,
                 "    if args.workers > 9:\n        optimizer = torch.optim.SGD([], lr=1)\n");
    project.folder.file("train.py", text);
    Ran ran = project.fix({"--json", "-o", "out"}, {"python3", "train.py"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    Json json = Json::parse(ran.out, "stdout");
    EXPECT_EQ(json["loaders"].line(),
              R"([{"file": "train.py", "line": 18, "name": "torch.utils.data.DataLoader", )"
              R"("role": "train", "in_force": true}])");
    EXPECT_EQ(json["optimizers"].line(),
              R"([{"file": "train.py", "line": 15, "name": "torch.optim.Adam", "in_force": true}, )"
              R"({"file": "train.py", "line": 17, "name": "torch.optim.SGD", "in_force": false}])");
    EXPECT_EQ(json["loops"].line(), R"([{"file": "train.py", "line": 22, "kind": "for"}])");
}

TEST(FixTest, RunsNothingAndChangesNothing) {
    Project project;
    ASSERT_EQ(project.fix({"-o", "out"}, {"python3", "train.py"}).status, 0);
    EXPECT_EQ(read_file(project.folder.path() / "train.py", 1 << 20, "the script"), kTrain);
    EXPECT_FALSE(std::filesystem::exists(project.folder.path() / "imported"));
    EXPECT_FALSE(std::filesystem::exists(project.folder.path() / "__pycache__"));
}

TEST(FixTest, NeverWritesIntoAFolderThatIsInUse) {
    Project project;
    project.folder.file("out/mine.txt", "mine");
    Ran ran = project.fix({"-o", "out"}, {"python3", "train.py"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: out: the folder exists and is not empty\n"
              "  expected: a new folder\n"
              "  fix:      name another one with -o\n");
    EXPECT_FALSE(std::filesystem::exists(project.folder.path() / "out/fix.json"));
}

TEST(FixTest, SaysWhatItCannotWorkWith) {
    Project project;
    project.folder.file("empty.py", "print('no training here')\n");
    Ran none = project.fix({"-o", "a"}, {"python3", "empty.py"});
    EXPECT_EQ(none.status, 1);
    EXPECT_THAT(none.out, HasSubstr("No training loop, data loader or trainer was found"));
    Ran missing = project.fix({"-o", "b"}, {"python3", "nowhere.py"});
    EXPECT_EQ(missing.status, 2);
    EXPECT_THAT(missing.err, HasSubstr("nowhere.py"));
    EXPECT_FALSE(std::filesystem::exists(project.folder.path() / "b"));
    EXPECT_EQ(run({SATURATE_BINARY, "fix", "--dry-run"}).status, 2);
}

TEST(FixTest, OfAJobThatFailsItsErrorIsTheAnswer) {
    Project project;
    TemporaryFolder cache;  // another search may be under way
    project.folder.file("train.py", std::string("raise ValueError('no pictures')\n") + kTrain);
    Ran ran = run({SATURATE_BINARY, "fix", "-o", "out", "--", "python3", "train.py"},
                  {.folder = project.folder.path(),
                   .environment = {{"SATURATE_CACHE", cache.path().string()}}});
    EXPECT_EQ(ran.status, 4);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err,
                HasSubstr("Your job fails without any change: ValueError: no pictures; its last "
                          "lines:\n"));
    EXPECT_THAT(ran.err,
                HasSubstr("nothing was tried; --dry-run shows what reading alone finds\n"));
}

TEST(FixTest, ACommandThatCannotBeStartedIsNoFailedJob) {
    Project project;
    Ran ran = run({SATURATE_BINARY, "fix", "-o", "out", "--", "./train.py"},
                  {.folder = project.folder.path()});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: cannot start \"./train.py\": Permission denied\n"
              "  expected: a program that exists and can be run\n"
              "  fix:      put python before it: python ./train.py\n");
}

// A new build may take its place while a search goes on.
TEST(FixTest, ThatItsOwnFileIsGoneChangesNothing) {
    Project project;
    TemporaryFolder cache;
    project.folder.file("train.py", "raise ValueError('no pictures')\n");
    std::string copy = cache.path() / "saturate";
    std::string line =
        "cp \"$1\" \"$2\" && exec 9<\"$2\" && rm \"$2\" && "
        "exec /proc/self/fd/9 fix -o out -- python3 train.py";
    Ran ran = run({"sh", "-c", line, "sh", SATURATE_BINARY, copy},
                  {.folder = project.folder.path(),
                   .environment = {{"SATURATE_CACHE", cache.path().string()}}});
    EXPECT_EQ(ran.status, 4);
    EXPECT_THAT(ran.err, HasSubstr("Your job fails without any change: ValueError: no pictures"));
}

TEST(FixTest, AValueOfTheCommandLineIsLeftToTheUser) {
    Project project;
    Ran ran = project.fix({"--json", "-o", "out"}, {"python3", "train.py", "--workers", "0"});
    Json json = Json::parse(ran.out, "stdout");
    std::string why;
    for (const Json& refusal : json["refused"].items())
        if (refusal["setting"].string() == "num_workers")
            why = refusal["why"].string().value_or("");
    EXPECT_EQ(why, "your command sets --workers to 0: change it there");
}

TEST(FixTest, AFlagOfTheCommandLineIsLeftToTheUser) {
    Project project;
    std::string text = kTrain;
    text.replace(text.find("args = parser"), 0,
                 "parser.add_argument('--cpu', action='store_true')\n");
    text.replace(text.find("args.workers)"), 12, "args.workers, pin_memory=not args.cpu");
    project.folder.file("train.py", text);
    Ran ran = project.fix({"--json", "-o", "out"}, {"python3", "train.py", "--cpu"});
    Json json = Json::parse(ran.out, "stdout");
    std::string why;
    for (const Json& refusal : json["refused"].items())
        if (refusal["setting"].string() == "pin_memory") why = refusal["why"].string().value_or("");
    EXPECT_EQ(why, "your command has --cpu: change it there") << ran.out;
}

}  // namespace
}  // namespace saturate
