// SPDX-License-Identifier: Apache-2.0
// What becomes of processes: a wrapper's, and those of a search that is killed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "support/run.h"

namespace saturate {
namespace {

TEST(ProcessCliTest, ALimitEndsWhatAWrapperStarted) {
    TemporaryFolder folder;
    std::string inner = fmt::format("echo $$ > {}/pid; exec sleep 1000", folder.path().string());
    Ran ran = run({SATURATE_BINARY, "run", "--seconds", "0.3", "--profile", "off", "-o",
                   (folder.path() / "run").string(), "--", "/bin/sh", "-c",
                   fmt::format("setsid sh -c '{}'; echo done", inner)});
    EXPECT_EQ(ran.status, 124) << ran.err;
    std::ifstream in(folder.path() / "pid");
    pid_t inner_pid = 0;
    in >> inner_pid;
    ASSERT_GT(inner_pid, 0);
    EXPECT_NE(::kill(inner_pid, 0), 0) << "it still runs when run is over";
}

// Reading the FIFO waits for the trial's script, `tail --pid` for its end, and the lock is held
// until the last process of the search is gone.
TEST(ProcessCliTest, ASearchThatIsKilledLeavesNothingBehind) {
    TemporaryFolder folder;
    folder.file("trial.sh", "sh -c 'echo $$ > fifo; exec sleep 1000'; :\n");
    folder.file("kill.sh",
                "mkfifo fifo; mkdir tmp; export TMPDIR=$PWD/tmp SATURATE_CACHE=$PWD/cache\n"
                "$BINARY tune --quiet --device cpu -o tune -- sh trial.sh & search=$!\n"
                "read script < fifo; kill -9 $search; wait $search\n"
                "tail --pid=$script -f /dev/null\n"
                "flock cache/tune-cpu.lock true && echo unlocked\n"
                "ls -A tmp\n");
    Ran ran = run({"bash", "kill.sh"},
                  {.folder = folder.path(), .environment = {{"BINARY", SATURATE_BINARY}}});
    EXPECT_EQ(ran.out, "unlocked\n") << ran.err;
}

}  // namespace
}  // namespace saturate
