// SPDX-License-Identifier: Apache-2.0
// run in front of commands that are not Python with torch: they must not feel it.
#include "support/run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::Not;

// Without a driver, in a folder of its own.
class RunTest : public testing::Test {
  protected:
    Ran watched(std::vector<std::string> words, std::vector<std::string> options = {},
                std::string input = "", std::map<std::string, std::string> environment = {}) {
        std::vector<std::string> command = {SATURATE_BINARY, "run"};
        command.insert(command.end(), options.begin(), options.end());
        command.emplace_back("--");
        command.insert(command.end(), words.begin(), words.end());
        environment["LD_LIBRARY_PATH"] = std::string(SATURATE_NVML_REPLAY) + "/new";
        environment["SATURATE_NVML_RECORDING"] = "";
        return run(command, {.folder = folder_.path(), .environment = environment, .input = input});
    }
    Json read_json(const std::string& name) {
        return Json::parse(read_file(folder_.path() / name, 1 << 20, "a part of a record"), name);
    }
    TemporaryFolder folder_;
};

TEST_F(RunTest, TheCommandKeepsItsInputOutputAndStatus) {
    Ran ran = watched({"sh", "-c", "cat; echo to-stderr >&2; exit 7"}, {"-o", "r"}, "typed\n");
    EXPECT_EQ(ran.status, 7);
    EXPECT_EQ(ran.out, "typed\n");
    EXPECT_THAT(ran.err, HasSubstr("to-stderr\n"));
    EXPECT_THAT(ran.err, HasSubstr("saturate: the record is r\n"));
    Json summary = read_json("r/summary.json");
    EXPECT_EQ(summary["exit_status"].integer(), 7);
    EXPECT_EQ(summary["ended"].string(), "failed");
    Json head = read_json("r/run.json");
    EXPECT_EQ(head["kind"].string(), "run");
    EXPECT_EQ(head["command"].items().size(), 3u);
}

TEST_F(RunTest, ACommandThatASignalEndedEndsUsAlike) {
    EXPECT_EQ(watched({"sh", "-c", "kill -TERM $$"}, {"-o", "a"}).status, 128 + SIGTERM);
    EXPECT_EQ(watched({"sh", "-c", "kill -KILL $$"}, {"-o", "b"}).status, 128 + SIGKILL);
}

TEST_F(RunTest, WhatToTypeInsteadOfACommandThatCannotBeStarted) {
    auto advice = [&](const std::vector<std::string>& command) {
        Ran ran = watched(command, {"-o", "a"});
        EXPECT_THAT(ran.status, testing::AnyOf(126, 127));
        std::size_t at = ran.err.find("fix:      ");
        return at == std::string::npos ? "" : ran.err.substr(at + 10);
    };
    folder_.file("my train.py", "x = 1\n");
    folder_.file("train.sh", "python train.py\n");
    folder_.file("start", "#!/usr/bin/env python3\nx = 1\n");
    EXPECT_EQ(advice({"my train.py", "--lr", "1"}),
              "put python before it: python 'my train.py' --lr 1\n");
    EXPECT_EQ(advice({"./my train.py"}), "put python before it: python './my train.py'\n");
    EXPECT_EQ(advice({"./start"}), "put python before it: python ./start\n");
    EXPECT_EQ(advice({"train.sh"}), "put bash before it: bash train.sh\n");
    EXPECT_EQ(advice({"./none.ipynb"}),
              "make a script of the notebook first: jupyter nbconvert --to script ./none.ipynb\n");
    EXPECT_EQ(advice({"source", "env/bin/activate"}),
              "source is a word of the shell: start a shell, as in bash -c 'source "
              "env/bin/activate'\n");
    EXPECT_EQ(advice({"python train.py"}), "leave out the quotes: -- python train.py\n");
    EXPECT_EQ(advice({"./"}), "that is a folder: name the program in it\n");
}

TEST_F(RunTest, VariablesBeforeTheCommandAreSet) {
    Ran ran = watched({"A=one", "B2_=two words", "sh", "-c", "echo $A, $B2_"}, {"-o", "a"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.out, "one, two words\n");
}

TEST_F(RunTest, WhatCannotBeStartedIs126Or127AndOurOwnFailure125) {
    Ran ran = watched({"no-such-command"}, {"-o", "a"});
    EXPECT_EQ(ran.status, 127);
    EXPECT_EQ(ran.err,
              "error: cannot start \"no-such-command\": No such file or directory\n"
              "  expected: a program that exists and can be run\n"
              "  fix:      check the name; if no-such-command belongs to an environment, activate "
              "that first\n");
    folder_.file("plain.txt", "no program");
    EXPECT_EQ(watched({"./plain.txt"}, {"-o", "b"}).status, 126);
    folder_.file("full/x", "");
    EXPECT_EQ(watched({"true"}, {"-o", "full"}).status, 125);
    EXPECT_EQ(watched({"true"}, {"--profile", "never", "-o", "c"}).status, 125);
    ran = run({SATURATE_BINARY, "run"}, {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 125);
    EXPECT_EQ(ran.err,
              "error: run needs a command\n"
              "  expected: saturate run [OPTIONS] -- COMMAND...\n"
              "  fix:      saturate run -- python train.py\n");
}

TEST_F(RunTest, AnUnknownChangeIsSaidWithASuggestion) {
    Ran ran = watched({"true"}, {"--apply", "num_worker=4", "-o", "r"});
    EXPECT_EQ(ran.status, 125);
    std::vector<std::string_view> lines = split(ran.err, '\n');
    ASSERT_EQ(lines.size(), 4u) << ran.err;
    EXPECT_EQ(lines[0], "error: --apply does not know \"num_worker\"");
    EXPECT_EQ(lines[2], "  fix:      --apply num_workers");
    const std::string_view groups = "  expected: safe, numerics, auto, ";
    ASSERT_TRUE(lines[1].starts_with(groups)) << lines[1];
    std::string page = read_file(SATURATE_SOURCE_DIR "/docs/run.md", 1 << 20, "a page");
    std::vector<std::string_view> names = split(lines[1].substr(groups.size()), ',');
    EXPECT_GE(names.size(), 14u);
    for (std::string_view name : names)
        EXPECT_THAT(page, testing::ContainsRegex(fmt::format("`{}[=[`]", trim(name))));
}

TEST_F(RunTest, EveryNameThatNobodyToldOfIsUnknown) {
    Ran ran = watched({"true"}, {"--apply", "safe,num_workers=2", "-o", "r"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.err, HasSubstr("saturate:   unknown    safe: no training step was seen from "
                                   "inside\n"
                                   "saturate:   unknown    num_workers=2: no training step was "
                                   "seen from inside\n"));
}

TEST_F(RunTest, AValueThatIsNoNumberIsSaid) {
    Ran ran = watched({"true"}, {"--apply", "num_workers=many", "-o", "r"});
    EXPECT_EQ(ran.status, 125);
    EXPECT_EQ(ran.err,
              "error: --apply has \"num_workers=many\"\n"
              "  expected: num_workers=N, a whole number\n");
    EXPECT_EQ(watched({"true"}, {"--apply", "pin_memory=3", "-o", "r"}).status, 125);
}

TEST_F(RunTest, ALimitEndsTheCommandWith124) {
    Ran ran = watched({"sleep", "60"}, {"--seconds", "0.2", "-o", "r"});
    EXPECT_EQ(ran.status, 124);
    EXPECT_EQ(read_json("r/summary.json")["ended"].string(), "interrupted");
}

// Whether a process runs whose number a command left in a file.
bool runs(const std::filesystem::path& file) {
    pid_t pid = std::stoi(read_file(file, 100, "a number"));
    return ::kill(pid, 0) == 0;
}

TEST_F(RunTest, ALimitEndsAllThatAWrapperScriptStarted) {
    folder_.file("train.sh", "echo $$ > $1\nwhile :; do sleep 0.1; done\n");
    folder_.file("wrapper.sh",
                 "(sh train.sh orphan &)\n"  // its parent is gone before the limit
                 "sh train.sh behind &\n"
                 "sh train.sh inner\n"
                 "echo never\n");
    Ran ran = watched({"sh", "wrapper.sh"}, {"--seconds", "1", "-o", "r"});
    EXPECT_EQ(ran.status, 124);
    EXPECT_EQ(ran.out, "");
    for (const char* name : {"orphan", "behind", "inner"})
        EXPECT_FALSE(runs(folder_.path() / name)) << name;
}

TEST_F(RunTest, WhatTheCommandLeavesBehindByItselfIsLeftAlone) {
    Ran ran = watched({"sh", "-c", "sleep 60 >&- 2>&- & echo $! > pid"}, {"-o", "r"});
    EXPECT_EQ(ran.status, 0);
    ASSERT_TRUE(runs(folder_.path() / "pid"));
    ::kill(std::stoi(read_file(folder_.path() / "pid", 100, "a number")), SIGKILL);
}

TEST_F(RunTest, ARecordThatIsTakenAwayLeavesTheStatusAlone) {
    Ran ran = watched({"sh", "-c", "rm -r r; exit 3"}, {"-o", "r"});
    EXPECT_EQ(ran.status, 3);
    EXPECT_THAT(ran.err, HasSubstr("saturate: note: the record is incomplete: "));
    EXPECT_THAT(ran.err, HasSubstr("saturate: note: no diagnosis: not a run record"));
}

TEST_F(RunTest, AFullDiskOfTheRecordLeavesTheStatusAlone) {
    if (run({"unshare", "-rm", "true"}).status != 0)
        GTEST_SKIP() << "no mount of our own can be made here (unshare -rm)";
    folder_.file("full.sh",
                 "mount -t tmpfs -o size=256k none small || exit 99\n"
                 "exec \"$@\"\n");
    std::filesystem::create_directory(folder_.path() / "small");
    Ran ran = run({"unshare", "-rm", "sh", "full.sh", SATURATE_BINARY, "run", "-o", "small/r", "--",
                   "sh", "-c", "cat /dev/zero > small/fill; exit 5"},
                  {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 5) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("the record is incomplete: "));
}

TEST_F(RunTest, WithoutRoomForTheShimTheCommandIsWatchedFromOutside) {
    Ran ran = watched({"sh", "-c", "echo hello; exit 4"}, {"-o", "r"}, "", {{"TMPDIR", "/proc"}});
    EXPECT_EQ(ran.status, 4);
    EXPECT_EQ(ran.out, "hello\n");
    EXPECT_THAT(ran.err,
                HasSubstr("note: watched only from outside: cannot create a folder in /proc: "));
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / "r/summary.json"));
}

TEST_F(RunTest, AJsonAnswerHasStdoutForItself) {
    Ran ran = watched({"echo", "hello"}, {"--json", "-o", "r"});
    EXPECT_EQ(ran.status, 0);
    Json answer = Json::parse(ran.out, "stdout");
    EXPECT_EQ(answer["schema"].integer(), 1);
    EXPECT_EQ(answer["run"].string(), "r");
    EXPECT_EQ(answer["summary"]["exit_status"].integer(), 0);
    EXPECT_TRUE(answer["diagnosis"].is_object());
    EXPECT_THAT(ran.err, HasSubstr("hello\n"));
}

TEST_F(RunTest, WithoutAFolderTheRecordIsBesideOthersAndOutOfGit) {
    EXPECT_EQ(watched({"true"}).status, 0);
    EXPECT_EQ(watched({"true"}).status, 0);
    int records = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "saturate-runs"))
        if (std::filesystem::exists(entry.path() / "summary.json")) ++records;
    EXPECT_EQ(records, 2);
    EXPECT_EQ(read_file(folder_.path() / "saturate-runs/.gitignore", 100, "x"), "*\n");
}

TEST_F(RunTest, NothingIsLeftInTheFolderForTemporaryFiles) {
    std::filesystem::create_directory(folder_.path() / "tmp");
    EXPECT_EQ(
        watched({"true"}, {"-o", "r"}, "", {{"TMPDIR", (folder_.path() / "tmp").string()}}).status,
        0);
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path() / "tmp"));
}

// Starts run in front of a script that says "ready" in a file, sends us a signal, and gives our
// status.
int status_after(const std::filesystem::path& folder, const std::string& script, int number) {
    pid_t pid = ::fork();
    if (pid == 0) {
        if (::chdir(folder.c_str()) != 0) ::_exit(99);
        std::freopen("/dev/null", "w", stderr);
        ::execl(SATURATE_BINARY, SATURATE_BINARY, "run", "-o", "r", "--", "sh", "-c",
                script.c_str(), nullptr);
        ::_exit(98);
    }
    while (!std::filesystem::exists(folder / "ready")) ::usleep(1000);
    ::kill(pid, number);
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(RunTest, WhatIsSentToUsReachesTheCommand) {
    for (auto [name, number] :
         {std::pair{"TERM", SIGTERM}, {"INT", SIGINT}, {"HUP", SIGHUP}, {"USR1", SIGUSR1}}) {
        TemporaryFolder folder;
        std::string script =
            fmt::format("trap 'exit 42' {}; touch ready; while :; do sleep 0.05; done", name);
        EXPECT_EQ(status_after(folder.path(), script, number), 42) << name;
        EXPECT_TRUE(std::filesystem::exists(folder.path() / "r/summary.json")) << name;
    }
}

TEST_F(RunTest, APlainPythonSeesItsOwnPathAndItsOwnSitecustomize) {
    folder_.file("own/sitecustomize.py", "import sys\nsys.own_ran = __name__\n");
    std::string code =
        "import sys, os\n"
        "print(getattr(sys, 'own_ran', None), 'torch' in sys.modules)\n"
        "print(any('saturate-run-' in p for p in sys.path))\n";
    std::map<std::string, std::string> environment = {
        {"PYTHONPATH", (folder_.path() / "own").string()}};
    Ran plain =
        run({"python3", "-c", code}, {.folder = folder_.path(), .environment = environment});
    Ran ran = watched({"python3", "-c", code}, {"-o", "r"}, "", environment);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "sitecustomize False\nFalse\n");
    EXPECT_EQ(ran.out, plain.out);
    EXPECT_THAT(ran.err, HasSubstr("no training step seen from inside"));
}

TEST_F(RunTest, AShimThatCannotWorkSaysSoOnceAndTheScriptGoesOn) {
    // A stranger that calls itself torch and has none of what the hooks need.
    folder_.file("torch/__init__.py", "answer = 42\n");
    Ran ran = watched({"python3", "-c", "import torch; print(torch.answer)"}, {"-o", "r"}, "",
                      {{"PYTHONPATH", folder_.path().string()}});
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.out, "42\n");
    EXPECT_THAT(ran.err, HasSubstr("saturate: no longer watching from inside (hooking torch: "));
    EXPECT_THAT(ran.err, Not(HasSubstr("Traceback")));
}

}  // namespace
}  // namespace saturate
