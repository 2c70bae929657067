// SPDX-License-Identifier: Apache-2.0
#include "process/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

// True when it is gone, or goes within half a minute.
bool is_gone(pid_t pid) {
    int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0) return errno == ESRCH;
    pollfd end{fd, POLLIN, 0};
    int ready = ::poll(&end, 1, 30'000);
    ::close(fd);
    return ready == 1;
}

bool is_running(pid_t pid) { return ::kill(pid, 0) == 0; }

// Opening a FIFO waits for the other side, so a script that writes its pid there has begun.
class ChildTest : public testing::Test {
  protected:
    ChildTest() : fifo_(folder_.path() / "fifo") { ::mkfifo(fifo_.c_str(), 0600); }
    std::vector<std::string> sh(const std::string& script) {
        return {"/bin/sh", "-c", "F=" + fifo_.string() + "\n" + script};
    }
    pid_t said_pid() {
        std::ifstream in(fifo_);
        pid_t pid = 0;
        in >> pid;
        return pid;
    }
    TemporaryFolder folder_;
    fs::path fifo_;
};

TEST_F(ChildTest, StatusSignalAndAMissingProgram) {
    EXPECT_EQ(Child({"/bin/sh", "-c", "exit 3"}, {}).wait(), 3);
    EXPECT_EQ(Child({"/bin/sh", "-c", "exit 3"}, {.tree = Tree::ended}).wait(), 3);
    for (Tree tree : {Tree::free, Tree::ended_with}) {
        Child child({"/bin/sh", "-c", "kill -9 $$"}, {.tree = tree});
        EXPECT_EQ(child.wait(), 128 + SIGKILL);
        EXPECT_EQ(child.ended_by_signal(), SIGKILL);
        try {
            Child missing({"/nowhere/program"}, {.tree = tree});
            FAIL() << "a program that is not there was started";
        } catch (const ChildNotStarted& error) {
            EXPECT_EQ(error.error(), ENOENT);
        }
    }
}

// In a session of its own, so that neither group nor terminal would find it.
TEST_F(ChildTest, WhatTheCommandLeavesBehindEndsWithIt) {
    Child child(sh("setsid sleep 1000 & echo $! > $F; exit 5"), {.tree = Tree::ended_with});
    pid_t left = said_pid();
    EXPECT_EQ(child.wait(), 5);
    EXPECT_TRUE(is_gone(left));
}

TEST_F(ChildTest, OrItStaysWhereThatIsTheCommandsAffair) {
    Child child(sh("setsid sh -c 'echo $$ > '$F'; exec sleep 1000' & wait $!; exit 5"),
                {.tree = Tree::ended});
    pid_t left = said_pid();
    child.signal(SIGKILL);
    EXPECT_EQ(child.wait(), 128 + SIGKILL);
    EXPECT_TRUE(is_running(left));
    ::kill(left, SIGKILL);
}

TEST_F(ChildTest, ASignalToTheTreeReachesWhatAWrapperStarted) {
    Child child(sh("setsid sh -c 'echo $$ > '$F'; exec sleep 1000'; exit 0"),
                {.tree = Tree::ended});
    pid_t wrapped = said_pid();
    child.signal_tree(SIGTERM);
    EXPECT_EQ(child.wait(), 128 + SIGTERM);
    EXPECT_TRUE(is_gone(wrapped));
}

TEST_F(ChildTest, TheEndOfATreeIsTheEndOfAllOfIt) {
    Child child(sh("sh -c 'trap \"\" TERM; echo $$ > '$F'; sleep 1000; :'"), {.tree = Tree::ended});
    pid_t stubborn = said_pid();
    child.signal_tree(SIGTERM);  // the outer shell ends, the inner one does not
    EXPECT_EQ(child.wait_for(300'000'000), std::nullopt);
    EXPECT_TRUE(is_running(stubborn));
    child.signal_tree(SIGKILL);
    child.wait();
    EXPECT_TRUE(is_gone(stubborn));
}

// What kill -9 of a search does: the search cannot clean up, and yet nothing stays; its lock is
// free only once all is gone.
TEST_F(ChildTest, TheTreeEndsWhenWeAreKilledAndHoldsOurLockUntilThen) {
    fs::path lock = folder_.file("lock", "");
    pid_t search = ::fork();
    if (search == 0) {
        int fd = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
        ::flock(fd, LOCK_EX);
        Child child(sh("setsid sh -c 'trap \"\" TERM; echo $$ > '$F'; sleep 1000; :'"),
                    {.own_group = true, .tree = Tree::ended});
        child.wait();
        ::_exit(0);
    }
    pid_t stubborn = said_pid();
    ::kill(search, SIGKILL);
    ::waitpid(search, nullptr, 0);
    int fd = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_NE(::flock(fd, LOCK_EX | LOCK_NB), 0) << "free while a trial still runs";
    EXPECT_TRUE(is_gone(stubborn));
    EXPECT_EQ(::flock(fd, LOCK_EX), 0);
    ::close(fd);
}

}  // namespace
}  // namespace saturate
