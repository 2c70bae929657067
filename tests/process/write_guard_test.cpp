// SPDX-License-Identifier: Apache-2.0
// A process under a guard changes nothing below the folder, by whatever name it is reached, and
// anything beside it.
#include "process/write_guard.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "process/child.h"
#include "process/scratch_tree.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

class WriteGuardTest : public testing::Test {
  protected:
    // The status of a shell that is told the folders as $1 and $2.
    int sh(const WriteGuard* guard, const std::string& script) {
        Child child({"sh", "-c", script, "sh", user_.path(), beside_.path()},
                    {.no_input = true, .guard = guard});
        return child.wait();
    }
    TemporaryFolder user_, beside_;
};

TEST_F(WriteGuardTest, NothingBelowTheFolderIsChanged) {
    user_.file("data.bin", "mine");
    user_.file("records/old", "");
    WriteGuard guard({.folder = user_.path(), .allowed = user_.path() / "records"});
    if (!guard.is_there()) GTEST_SKIP() << "this system has no Landlock";
    fs::create_symlink(user_.path() / "data.bin", beside_.path() / "link");
    EXPECT_NE(sh(&guard, "echo x > \"$1/data.bin\""), 0);
    EXPECT_NE(sh(&guard, "echo x > \"$2/link\""), 0);
    EXPECT_NE(sh(&guard, "echo x > \"$1/new\""), 0);
    EXPECT_NE(sh(&guard, "rm \"$1/data.bin\""), 0);
    EXPECT_NE(sh(&guard, "mv \"$1/data.bin\" \"$2/\""), 0);
    EXPECT_EQ(read_if_there(user_.path() / "data.bin"), "mine");
    EXPECT_FALSE(fs::exists(user_.path() / "new"));

    EXPECT_EQ(sh(&guard,
                 "cat \"$1/data.bin\" > \"$2/copy\" && mkdir \"$2/sub\" && mv \"$2/copy\" "
                 "\"$2/sub/\" && echo y > \"$1/records/new\" && echo > /dev/null"),
              0);
    EXPECT_EQ(read_if_there(beside_.path() / "sub/copy"), "mine");
    EXPECT_TRUE(fs::exists(user_.path() / "records/new"));
}

// A checkpoint that was there before is a copy, data is a link that cannot be written through.
TEST_F(WriteGuardTest, ATreeOfLinksIsGuarded) {
    std::string large(5 << 20, 'x');
    user_.file("last.pt", large);
    user_.file("data.bin", large);
    TemporaryFolder scratch;
    ScratchTree tree({.folder = user_.path(), .parent = scratch.path(), .may_overlay = false});
    if (!tree.guard()) GTEST_SKIP() << "this system has no Landlock";
    EXPECT_EQ(tree.unguarded(), "");
    auto status = [&](const std::string& script) {
        Child child(tree.command({"sh", "-c", script}), {.no_input = true, .guard = tree.guard()});
        return child.wait();
    };
    EXPECT_EQ(status("echo new > last.pt && echo log > train.log"), 0);
    EXPECT_NE(status("echo new > data.bin"), 0);
    EXPECT_EQ(fs::file_size(user_.path() / "last.pt"), large.size());
    EXPECT_EQ(fs::file_size(user_.path() / "data.bin"), large.size());
}

}  // namespace
}  // namespace saturate
