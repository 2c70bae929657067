// SPDX-License-Identifier: Apache-2.0
// `fix` on jobs that do not train as they should: each is told with its last lines and what to do,
// and nothing of the user's folder changes. No PyTorch is needed to fail.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class FixRunsTest : public testing::Test {
  protected:
    // Every file with what it holds.
    [[nodiscard]] std::map<std::string, std::string> files() const {
        std::map<std::string, std::string> out;
        for (const auto& entry : fs::recursive_directory_iterator(project_.path()))
            out[entry.path().string()] =
                entry.is_regular_file() ? read_if_there(entry.path()) : "a folder";
        return out;
    }
    // The project stays as it is, and no temporary file is left.
    Ran fix(const std::string& script, const std::vector<std::string>& before = {},
            const char* budget = "90s") {
        project_.file("train.py", script);
        auto was = files();
        std::vector<std::string> words = before;
        for (const char* word : {SATURATE_BINARY, "fix", "--budget", budget, "-o"})
            words.emplace_back(word);
        words.push_back((out_.path() / "fix").string());
        words.insert(words.end(), {"--", "python3", "train.py"});
        Ran ran = run(words, {.folder = project_.path(),
                              .environment = {{"TMPDIR", temporary_.path().string()},
                                              {"SATURATE_CACHE", cache_.path().string()}}});
        EXPECT_EQ(files(), was);
        EXPECT_TRUE(fs::is_empty(temporary_.path()));
        return ran;
    }
    TemporaryFolder project_, out_, temporary_, cache_;
};

TEST_F(FixRunsTest, AJobThatFailsIsToldWithItsLastLines) {
    Ran ran = fix("print('loading')\nraise ValueError('no such data set')\n");
    EXPECT_EQ(ran.status, 4);
    EXPECT_THAT(
        ran.err,
        HasSubstr(
            "Your job fails without any change: ValueError: no such data set; its last lines:\n"));
    EXPECT_THAT(ran.err, HasSubstr("    ValueError: no such data set\n"));
    EXPECT_TRUE(fs::exists(out_.path() / "fix/fix.json"));
    EXPECT_FALSE(fs::exists(out_.path() / "fix/fix.patch"));
}

TEST_F(FixRunsTest, OneThatAsksForInputIsToldToGiveItAsArguments) {
    Ran ran = fix("name = input('name of the run? ')\n");
    EXPECT_EQ(ran.status, 4);
    EXPECT_THAT(ran.err, HasSubstr("fix: it waits for keyboard input, which a trial does not have"));
}

TEST_F(FixRunsTest, OneThatNeedsArgumentsShowsWhich) {
    Ran ran = fix(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--data', required=True)\n"
        "p.parse_args()\n");
    EXPECT_EQ(ran.status, 4);
    EXPECT_THAT(ran.err, HasSubstr("the following arguments are required: --data"));
    EXPECT_THAT(ran.err, HasSubstr("fix: add its arguments after the script"));
}

TEST_F(FixRunsTest, OneThatWantsAGpuIsToldSo) {
    Ran ran = fix("raise RuntimeError('No CUDA GPUs are available')\n");
    EXPECT_EQ(ran.status, 4);
    EXPECT_THAT(ran.err, HasSubstr("fix: it needs a GPU, and this machine has none"));
}

TEST_F(FixRunsTest, OneThatEndsAtOnceAndSaysNothing) {
    Ran ran = fix("pass\n");
    EXPECT_EQ(ran.status, 4);
    EXPECT_THAT(ran.err, HasSubstr("Your job ended, and no training step of PyTorch was seen; it "
                                   "printed nothing\n"));
    EXPECT_THAT(ran.err, HasSubstr("name the training script"));
}

TEST_F(FixRunsTest, OneThatHangsEndsWithItsShareOfTheBudget) {
    Ran ran = fix("import time\nprint('waiting', flush=True)\ntime.sleep(1000)\n", {}, "10s");
    EXPECT_EQ(ran.status, 4);
    EXPECT_THAT(ran.err, HasSubstr("could not be measured: no training step within 5 s"));
    EXPECT_THAT(ran.err, HasSubstr("--budget 30m"));
}

TEST_F(FixRunsTest, OneThatTakesAllMemoryIsToldSo) {
    Ran ran = fix("raise MemoryError('unable to allocate 9 TiB')\n");
    EXPECT_EQ(ran.status, 4);
    EXPECT_THAT(ran.err,
                HasSubstr("Your job runs out of memory without any change: MemoryError: unable"));
}

// As the kernel does with one that takes too much.
TEST_F(FixRunsTest, OneThatIsKilledForItsMemoryIsToldSo) {
    Ran ran = fix("import os\nprint('loading', flush=True)\nos.kill(os.getpid(), 9)\n");
    EXPECT_EQ(ran.status, 4);
    EXPECT_THAT(ran.err, HasSubstr("Your job runs out of memory without any change"));
    EXPECT_THAT(ran.err, HasSubstr("    loading\n"));
}

// Trials have a megabyte for what the job writes.
TEST_F(FixRunsTest, AFullDiskIsSaidWithItsPlace) {
    std::vector<std::string> small = {"unshare",
                                      "--user",
                                      "--map-root-user",
                                      "--mount",
                                      "sh",
                                      "-c",
                                      "mount -t tmpfs -o size=1m none \"$TMPDIR\" && exec \"$@\"",
                                      "sh"};
    std::vector<std::string> probe = small;
    probe.emplace_back("true");
    if (run(probe, {.environment = {{"TMPDIR", temporary_.path().string()}}}).status != 0)
        GTEST_SKIP() << "this system has no mount namespaces";
    Ran ran = fix("with open('rows.bin', 'wb') as out:\n    out.write(bytes(8 << 20))\n", small);
    EXPECT_EQ(ran.status, 4);
    EXPECT_THAT(ran.err, HasSubstr("No space left on device"));
    EXPECT_THAT(ran.err, HasSubstr("fix: the disk is full; trials write below $TMPDIR"));
}

const char* const kWrites = R"py(import os
os.makedirs("checkpoints", exist_ok=True)
open("checkpoints/last", "w").write("x")
open(os.path.abspath("log.txt"), "a").write("x")
open("train.py", "a").write("# changed by itself")
raise ValueError("the end")
)py";

TEST_F(FixRunsTest, WhatAJobWritesDoesNotReachTheFolder) {
    project_.file("log.txt", "mine\n");
    EXPECT_THAT(fix(kWrites).err, HasSubstr("ValueError: the end"));
}

// As in a container that may make no mount namespace.
TEST_F(FixRunsTest, NorWhereThereAreNoNamespaces) {
    std::vector<std::string> closed = {
        "unshare", "--user", "--map-root-user",
        "sh",      "-c",     "echo 0 > /proc/sys/user/max_mnt_namespaces && exec \"$@\"",
        "sh"};
    std::vector<std::string> probe = closed;
    probe.emplace_back("true");
    if (run(probe).status != 0) GTEST_SKIP() << "this system has no user namespaces to close";
    EXPECT_THAT(fix(kWrites, closed).err, HasSubstr("ValueError: the end"));
}

TEST_F(FixRunsTest, AFolderThatIsReadOnlyNeedsAnotherPlaceForTheAnswer) {
    project_.file("train.py", "raise ValueError('the end')\n");
    std::vector<std::string> words = {
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        "mount --bind . . && mount -o remount,bind,ro . && cd \"$PWD\" && exec \"$@\"",
        "sh"};
    std::vector<std::string> probe = words;
    probe.emplace_back("true");
    if (run(probe, {.folder = project_.path()}).status != 0)
        GTEST_SKIP() << "this system has no mount namespaces";
    std::vector<std::string> here = words;
    here.insert(here.end(), {SATURATE_BINARY, "fix", "--", "python3", "train.py"});
    Ran ran = run(here, {.folder = project_.path(),
                         .environment = {{"SATURATE_CACHE", cache_.path().string()}}});
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(ran.err, HasSubstr("choose another place with -o DIR"));
    EXPECT_THAT(fix("raise ValueError('the end')\n", words).err, HasSubstr("ValueError: the end"));
}

TEST_F(FixRunsTest, TwoAtOnceWouldMeasureEachOther) {
    fs::path file = cache_.path() / "tune-cpu.lock";
    int lock = ::open(file.c_str(), O_CREAT | O_RDWR, 0666);
    ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
    Ran ran = fix("pass\n");
    ::close(lock);
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(ran.err, HasSubstr("another search is already measuring on cpu"));
    EXPECT_FALSE(fs::exists(out_.path() / "fix"));
}

}  // namespace
}  // namespace saturate
