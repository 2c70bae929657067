// SPDX-License-Identifier: Apache-2.0
// What becomes of processes: a wrapper's, and those of a search that is killed.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "process/child.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

bool is_gone(pid_t pid) {
    int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0) return errno == ESRCH;
    pollfd end{fd, POLLIN, 0};
    int ready = ::poll(&end, 1, 60'000);
    ::close(fd);
    return ready == 1;
}

pid_t pid_in(const fs::path& file) {
    std::ifstream in(file);
    pid_t pid = 0;
    in >> pid;
    return pid;
}

TEST(ProcessCliTest, ALimitEndsWhatAWrapperStarted) {
    TemporaryFolder folder;
    std::string inner = fmt::format("echo $$ > {}/pid; exec sleep 1000", folder.path().string());
    Ran ran = run({SATURATE_BINARY, "run", "--seconds", "0.3", "--profile", "off", "-o",
                   (folder.path() / "run").string(), "--", "/bin/sh", "-c",
                   fmt::format("setsid sh -c '{}'; echo done", inner)});
    EXPECT_EQ(ran.status, 124) << ran.err;
    pid_t inner_pid = pid_in(folder.path() / "pid");
    ASSERT_GT(inner_pid, 0);
    EXPECT_NE(::kill(inner_pid, 0), 0) << "it still runs when run is over";
}

TEST(ProcessCliTest, ASearchThatIsKilledLeavesNothingBehind) {
    TemporaryFolder folder;
    fs::path fifo = folder.path() / "fifo";
    ::mkfifo(fifo.c_str(), 0600);
    fs::create_directories(folder.path() / "tmp");
    ::setenv("SATURATE_CACHE", (folder.path() / "cache").c_str(), 1);
    std::vector<std::string> command{
        SATURATE_BINARY,
        "tune",
        "--quiet",
        "-o",
        (folder.path() / "tune").string(),
        "--",
        "/bin/sh",
        "-c",
        fmt::format("sh -c 'echo $$ > {}; exec sleep 1000'; :", fifo.string())};
    Child search(command, {.environment = {{"TMPDIR", (folder.path() / "tmp").string()}}});
    pid_t script = pid_in(fifo);  // opening it waits for the script
    search.signal(SIGKILL);
    EXPECT_EQ(search.wait(), 128 + SIGKILL);
    EXPECT_TRUE(is_gone(script));
    // The lock is held until the last process of the search is gone.
    int lock = ::open((folder.path() / "cache/tune-cpu.lock").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(lock, 0);
    EXPECT_EQ(::flock(lock, LOCK_EX), 0);
    ::close(lock);
    EXPECT_TRUE(fs::is_empty(folder.path() / "tmp")) << "run left its folder behind";
    ::unsetenv("SATURATE_CACHE");
}

}  // namespace
}  // namespace saturate
