// SPDX-License-Identifier: Apache-2.0
// What becomes of processes: a wrapper's, and those of a search that is killed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "base/file.h"
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
// until the last process of the search is gone. What clears up holds descriptor 9 until it is done.
TEST(ProcessCliTest, ASearchThatIsKilledLeavesNothingBehind) {
    TemporaryFolder folder;
    // In the overlay of a trial a FIFO is another one: it lies outside of the job's folder.
    folder.file("trial.sh", "sh -c 'echo $$ > $FIFO; exec sleep 1000'; :\n");
    folder.file(
        "kill.sh",
        "exec 9>&1; mkfifo fifo; mkdir tmp job; export TMPDIR=$PWD/tmp SATURATE_CACHE=$PWD/cache "
        "FIFO=$PWD/fifo TRIAL=$PWD/trial.sh\n"
        "(cd job && exec $BINARY tune --quiet --device cpu -o ../tune -- sh $TRIAL) & "
        "search=$!\n"
        "read script < fifo; kill -9 $search; wait $search\n"
        "tail --pid=$script -f /dev/null\n"
        "flock cache/tune-cpu.lock true && echo unlocked\n");
    Ran ran = run({"bash", "kill.sh"},
                  {.folder = folder.path(), .environment = {{"BINARY", SATURATE_BINARY}}});
    EXPECT_EQ(ran.out, "unlocked\n") << ran.err;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "tmp"));
}

TEST(ProcessCliTest, TrialsOfACommandLeaveItsFolderAsItIs) {
    TemporaryFolder job, cache, out;
    job.file("mine", "old");
    if (run({"unshare", "-rm", "sh", "-c",
             "mkdir l u w m && mount -t overlay overlay -o "
             "lowerdir=l,upperdir=u,workdir=w,userxattr m"},
            {.folder = out.path()})
            .status != 0)
        GTEST_SKIP() << "this system allows no overlay of our own";
    Ran ran =
        run({SATURATE_BINARY, "tune", "--quiet", "--device", "cpu", "--budget", "30s", "-o",
             (out.path() / "tune").string(), "--", "sh", "-c",
             "echo x > made; echo new > mine; cat mine made; exit 3"},
            {.folder = job.path(), .environment = {{"SATURATE_CACHE", cache.path().string()}}});
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_EQ(read_if_there(job.path() / "mine"), "old");
    EXPECT_FALSE(std::filesystem::exists(job.path() / "made"));
    EXPECT_EQ(read_if_there(out.path() / "tune/trial-1.log").find("new\nx\n"), 0u);
}

}  // namespace
}  // namespace saturate
