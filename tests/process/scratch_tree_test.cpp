// SPDX-License-Identifier: Apache-2.0
// A command in a scratch tree sees the folder with its edits, may write anywhere below it, and
// leaves nothing behind.
#include "process/scratch_tree.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

TEST(ScratchTreeTest, ATrialChangesNothingOfTheFolder) {
    TemporaryFolder user, scratch;
    user.file("train.py", "old");
    user.file("data/rows.txt", "rows");
    {
        ScratchTree tree(user.path(), scratch.path(), {{"train.py", "new"}});
        Ran ran =
            run(tree.command({"sh", "-c",
                              "cat train.py data/rows.txt; echo x > train.py; rm data/rows.txt; "
                              "mkdir checkpoints && echo y > checkpoints/last"}));
        EXPECT_EQ(ran.status, 0) << ran.err;
        EXPECT_EQ(ran.out, "newrows");
    }
    EXPECT_EQ(read_if_there(user.path() / "train.py"), "old");
    EXPECT_EQ(read_if_there(user.path() / "data/rows.txt"), "rows");
    EXPECT_FALSE(fs::exists(user.path() / "checkpoints"));
    EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST(ScratchTreeTest, TheCommandKeepsItsStatus) {
    TemporaryFolder user, scratch;
    ScratchTree tree(user.path(), scratch.path(), {});
    EXPECT_EQ(run(tree.command({"sh", "-c", "exit 7"})).status, 7);
}

}  // namespace
}  // namespace saturate
