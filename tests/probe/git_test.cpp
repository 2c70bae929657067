// SPDX-License-Identifier: Apache-2.0
#include "probe/git.h"

#include <gtest/gtest.h>

#include "support/run.h"

namespace saturate {
namespace {

const std::string kOne(40, '1'), kTwo(40, '2');

TEST(GitTest, TheRevisionIsThatOfTheBranchAndIsFoundFromBelow) {
    TemporaryFolder folder;
    folder.file("code/deep/a.py", "");
    EXPECT_EQ(git_revision(folder.path() / "code/deep"), std::nullopt);
    folder.file("code/.git/HEAD", "ref: refs/heads/main\n");
    EXPECT_EQ(git_revision(folder.path() / "code/deep"), std::nullopt);  // no commit yet
    folder.file("code/.git/packed-refs",
                "# pack-refs with: peeled\n" + kOne + " refs/heads/main\n");
    EXPECT_EQ(git_revision(folder.path() / "code/deep"), kOne);
    folder.file("code/.git/refs/heads/main", kTwo + "\n");
    EXPECT_EQ(git_revision(folder.path() / "code/deep"), kTwo);
    folder.file("code/.git/HEAD", kOne + "\n");
    EXPECT_EQ(git_revision(folder.path() / "code"), kOne);
}

TEST(GitTest, AWorkTreeOfItsOwnFindsTheBranchInTheFirstOne) {
    TemporaryFolder folder;
    folder.file("main/.git/refs/heads/side", kTwo + "\n");
    folder.file("main/.git/worktrees/side/HEAD", "ref: refs/heads/side\n");
    folder.file("main/.git/worktrees/side/commondir", "../..\n");
    folder.file("side/.git",
                "gitdir: " + (folder.path() / "main/.git/worktrees/side").string() + "\n");
    EXPECT_EQ(git_revision(folder.path() / "side"), kTwo);
}

}  // namespace
}  // namespace saturate
