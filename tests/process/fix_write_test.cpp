// SPDX-License-Identifier: Apache-2.0
// The user's files change all together, and only while they are the files that were read.
#include "process/fix_write.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

TEST(FixWriteTest, TheOldVersionsStay) {
    TemporaryFolder user, out;
    user.file("a.py", "old a");
    user.file("sub/b.yaml", "old b");
    FixPatch patch{.files = {{"a.py", "old a", "new a"}, {"sub/b.yaml", "old b", "new b"}}};
    write_fixes(patch, {.folder = user.path()}, out.path() / "before");
    EXPECT_EQ(read_if_there(user.path() / "a.py"), "new a");
    EXPECT_EQ(read_if_there(user.path() / "sub/b.yaml"), "new b");
    EXPECT_EQ(read_if_there(out.path() / "before/a.py"), "old a");
    EXPECT_EQ(read_if_there(out.path() / "before/sub/b.yaml"), "old b");
}

TEST(FixWriteTest, AFileThatChangedMeanwhileStopsAll) {
    TemporaryFolder user, out;
    user.file("a.py", "old a");
    user.file("b.yaml", "changed by its owner");
    FixPatch patch{.files = {{"a.py", "old a", "new a"}, {"b.yaml", "old b", "new b"}}};
    EXPECT_THROW(write_fixes(patch, {.folder = user.path()}, out.path() / "before"), UserError);
    EXPECT_EQ(read_if_there(user.path() / "a.py"), "old a");
    EXPECT_EQ(read_if_there(user.path() / "b.yaml"), "changed by its owner");
    EXPECT_TRUE(fs::is_empty(out.path()));
}

TEST(FixWriteTest, WhereOneCannotBeWrittenNoneIs) {
    TemporaryFolder user, out;
    user.file("a.py", "old a");
    // Nothing can be written beside a file that is not there because its folder is a file.
    user.file("b", "");
    FixPatch patch{.files = {{"a.py", "old a", "new a"}, {"b/c.py", "", "new c"}}};
    EXPECT_ANY_THROW(write_fixes(patch, {.folder = user.path()}, out.path() / "before"));
    EXPECT_EQ(read_if_there(user.path() / "a.py"), "old a");
}

}  // namespace
}  // namespace saturate
