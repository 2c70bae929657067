// SPDX-License-Identifier: Apache-2.0
// A command in a scratch tree sees the folder with its edits, may write anywhere below it, and
// leaves nothing behind, whatever becomes of us.
#include "process/scratch_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/file.h"
#include "process/child.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

class ScratchTreeTest : public testing::TestWithParam<bool> {
  protected:
    [[nodiscard]] ScratchSettings settings(const std::vector<ScratchFile>& edited = {}) const {
        return {user_.path(), "", scratch_.path(), edited, GetParam()};
    }
    TemporaryFolder user_, scratch_;
};

TEST_P(ScratchTreeTest, ATrialChangesNothingOfTheFolder) {
    user_.file("train.py", "old");
    user_.file("data/rows.txt", "rows");
    {
        ScratchTree tree(settings({{"train.py", "new"}}));
        Ran ran =
            run(tree.command({"sh", "-c",
                              "cat train.py data/rows.txt; echo x > train.py; rm data/rows.txt; "
                              "mkdir checkpoints && echo y > checkpoints/last"}));
        EXPECT_EQ(ran.status, 0) << ran.err;
        EXPECT_EQ(ran.out, "newrows");
    }
    EXPECT_EQ(read_if_there(user_.path() / "train.py"), "old");
    EXPECT_EQ(read_if_there(user_.path() / "data/rows.txt"), "rows");
    EXPECT_FALSE(fs::exists(user_.path() / "checkpoints"));
    EXPECT_TRUE(fs::is_empty(scratch_.path()));
}

TEST_P(ScratchTreeTest, TheCommandKeepsItsStatus) {
    ScratchTree tree(settings());
    EXPECT_EQ(run(tree.command({"sh", "-c", "exit 7"})).status, 7);
}

TEST_P(ScratchTreeTest, OneThatIsKilledLeavesNeitherFilesNorProcesses) {
    user_.file("train.py", "old");
    TemporaryFolder beside;  // in an overlay a FIFO is another one
    fs::path fifo = beside.path() / "fifo";
    ::mkfifo(fifo.c_str(), 0600);
    int held[2];  // by every process that comes of this; closes with the last
    ASSERT_EQ(::pipe(held), 0);
    pid_t maker = ::fork();
    if (maker == 0) {
        ::close(held[0]);
        ScratchTree tree(settings());
        Child child(tree.command({"sh", "-c", "echo x > train.py; echo 1 > $0; sleep 1000", fifo}),
                    {.own_group = true, .tree = Tree::ended_with});
        child.wait();
        ::_exit(1);
    }
    ::close(held[1]);
    int begun = 0;
    std::ifstream(fifo) >> begun;
    EXPECT_EQ(begun, 1);
    EXPECT_FALSE(fs::is_empty(scratch_.path()));
    ::kill(maker, SIGKILL);
    ::waitpid(maker, nullptr, 0);
    pollfd end{held[0], POLLIN, 0};
    EXPECT_EQ(::poll(&end, 1, 30'000), 1);
    char byte = 0;
    EXPECT_EQ(::read(held[0], &byte, 1), 0) << "a process is left";
    ::close(held[0]);
    EXPECT_TRUE(fs::is_empty(scratch_.path()));
    EXPECT_EQ(read_if_there(user_.path() / "train.py"), "old");
}

TEST_P(ScratchTreeTest, TheNextOneSweepsWhatADeadOneLeft) {
    scratch_.file("saturate-tmp-dead/lock", "");
    scratch_.file("saturate-tmp-dead/upper/a", "a");
    scratch_.file("another/lock", "");
    ScratchTree first(settings());
    ScratchTree second(settings());
    EXPECT_FALSE(fs::exists(scratch_.path() / "saturate-tmp-dead"));
    EXPECT_TRUE(fs::exists(scratch_.path() / "another"));
    EXPECT_EQ(run(first.command({"true"})).status, 0);
    EXPECT_EQ(run(second.command({"true"})).status, 0);
}

// A job that runs in src/ and writes to ../experiment.
TEST_P(ScratchTreeTest, AllOfAWorkingTreeIsGuarded) {
    fs::create_directories(user_.path() / ".git");
    user_.file("src/train.py", "old");
    EXPECT_EQ(guarded_around(user_.path() / "src"), fs::canonical(user_.path()));
    EXPECT_EQ(guarded_around(scratch_.path()), fs::canonical(scratch_.path()));
    ScratchSettings with = settings({{"train.py", "new"}});
    with.inside = "src";
    ScratchTree tree(with);
    Ran ran = run(tree.command(
        {"sh", "-c", "cat train.py; mkdir ../experiment && echo y > ../experiment/log"}));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "new");
    EXPECT_FALSE(fs::exists(user_.path() / "experiment"));
}

// Configurations and folders of sources that are links to others of the project.
TEST_P(ScratchTreeTest, AnEditDoesNotGoThroughALink) {
    user_.file("shared/model.py", "old model ");
    user_.file("shared/other.py", "other ");
    user_.file("base.yaml", "old values");
    fs::create_directory_symlink("shared", user_.path() / "src");
    fs::create_symlink("base.yaml", user_.path() / "config.yaml");
    {
        ScratchTree tree(settings({{"src/model.py", "new model "}, {"config.yaml", "new values"}}));
        Ran ran = run(tree.command({"sh", "-c", "cat src/model.py src/other.py config.yaml"}));
        EXPECT_EQ(ran.status, 0) << ran.err;
        EXPECT_EQ(ran.out, "new model other new values");
    }
    EXPECT_EQ(read_if_there(user_.path() / "shared/model.py"), "old model ");
    EXPECT_EQ(read_if_there(user_.path() / "base.yaml"), "old values");
}

TEST(GuardedFolderTest, GoesAsFarUpAsTheJobsOwnPaths) {
    EXPECT_EQ(folders_above("root = './data'; print('a../b', 'x/../y', '...')"), 0);
    EXPECT_EQ(folders_above("path = '../model/{}'.format(name)"), 1);
    EXPECT_EQ(folders_above("save_dir: ../../out\ndata: ../data\n"), 2);
    EXPECT_EQ(folders_above("--dir=../../../../../data"), 3);
    if (!can_overlay()) GTEST_SKIP() << "no overlays here";
    TemporaryFolder user;
    fs::create_directories(user.path() / "project/src");
    fs::path src = user.path() / "project/src", all = fs::canonical(user.path());
    EXPECT_EQ(guarded_around(src, 0), all / "project/src");
    EXPECT_EQ(guarded_around(src, 1), all / "project");
    // Up to the temporary files, which hold what trials write.
    EXPECT_EQ(guarded_around(src, 3), all);
    fs::create_directories(user.path() / ".git");
    EXPECT_EQ(guarded_around(src, 1), all);
}

INSTANTIATE_TEST_SUITE_P(OverlayOrLinks, ScratchTreeTest, testing::Bool());

TEST(ScratchTreeLinksTest, DataIsNeverCopied) {
    TemporaryFolder user, scratch;
    user.file("train.py", "old");
    fs::create_directories(user.path() / "pictures");
    for (int i = 0; i < 2100; ++i) user.file("pictures/" + std::to_string(i) + ".jpg", "picture");
    std::ofstream(user.path() / "large.bin").close();
    fs::resize_file(user.path() / "large.bin", 50ull << 30);  // a hole: it takes no room
    ScratchTree tree({user.path(), "", scratch.path(), {}, false});
    Ran ran = run(tree.command({"sh", "-c",
                                "[ -L pictures ] && [ -L large.bin ] && [ ! -L train.py ] && "
                                "cat pictures/2099.jpg && stat -Lc %s large.bin"}));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "picture53687091200\n");
    EXPECT_EQ(tree.unguarded().empty(), tree.guard() != nullptr);
}

// A script among its data, and a configuration that is too large to be a copy.
TEST(ScratchTreeLinksTest, AnEditOfWhatIsALinkStaysInTheTree) {
    TemporaryFolder user, scratch;
    for (int i = 0; i < 2100; ++i) user.file("work/" + std::to_string(i) + ".jpg", "picture ");
    std::string large((5 << 20) - 3, '#');
    user.file("work/train.py", "old");
    user.file("large.yaml", large);
    {
        ScratchTree tree({user.path(),
                          "",
                          scratch.path(),
                          {{"work/train.py", "new "}, {"large.yaml", "edited"}},
                          false});
        Ran ran = run(tree.command({"cat", "work/7.jpg", "work/train.py", "large.yaml"}));
        EXPECT_EQ(ran.status, 0) << ran.err;
        EXPECT_EQ(ran.out, "picture new edited");
    }
    EXPECT_EQ(read_if_there(user.path() / "work/train.py"), "old");
    EXPECT_EQ(fs::file_size(user.path() / "large.yaml"), large.size());
}

}  // namespace
}  // namespace saturate
