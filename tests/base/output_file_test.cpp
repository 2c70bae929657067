// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) { return read_file(path, 1 << 20, "a file"); }
fs::perms mode_of(const fs::path& path) { return fs::status(path).permissions(); }

TEST(OutputFileTest, WhatIsThereStaysUnlessForced) {
    TemporaryFolder folder;
    fs::path there = folder.file("there.txt", "old");
    EXPECT_THROW(OutputFile(there, {}), UserError);
    EXPECT_EQ(text_of(there), "old");
    OutputFile(there, {.force = true}).write("new");
    EXPECT_EQ(text_of(there), "new");
    OutputFile(folder.path() / "free.txt", {}).write("new");
    EXPECT_EQ(text_of(folder.path() / "free.txt"), "new");
}

TEST(OutputFileTest, WhatSomebodyElseMadeMeanwhileStaysToo) {
    TemporaryFolder folder;
    OutputFile output(folder.path() / "a.txt", {});
    folder.file("a.txt", "theirs");
    EXPECT_THROW(output.write("ours"), UserError);
    EXPECT_EQ(text_of(folder.path() / "a.txt"), "theirs");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(OutputFileTest, AnInputIsNeverOverwrittenUnderWhateverName) {
    TemporaryFolder folder;
    fs::path input = folder.file("in.json", "input");
    fs::create_symlink("in.json", folder.path() / "link.json");
    fs::create_hard_link(input, folder.path() / "hard.json");
    fs::create_directory(folder.path() / "run");
    folder.file("run/steps.jsonl", "steps");
    folder.file("run/report.html", "page");
    OutputRule rule{.inputs = {input, folder.path() / "run"}, .force = true};
    for (const char* name :
         {"in.json", "link.json", "hard.json", "run/../in.json", "run/steps.jsonl", "run"})
        EXPECT_THROW(OutputFile(folder.path() / name, rule), UserError) << name;
    EXPECT_NO_THROW(OutputFile(folder.path() / "run/new.txt", rule));
    EXPECT_NO_THROW(OutputFile(folder.path() / "run/report.html", rule));
}

TEST(OutputFileTest, IsAsPrivateAsWhatItIsMadeFrom) {
    TemporaryFolder folder;
    fs::path secret = folder.file("secret.yaml", "x"), open = folder.file("open.yaml", "x");
    fs::permissions(secret, fs::perms(0600));
    fs::permissions(open, fs::perms(0644));
    mode_t before = ::umask(022);
    OutputFile(folder.path() / "a", {.inputs = {secret, open}}).write("x");
    OutputFile(folder.path() / "b", {.inputs = {open}}).write("x");
    ::umask(before);
    EXPECT_EQ(mode_of(folder.path() / "a"), fs::perms(0600));
    EXPECT_EQ(mode_of(folder.path() / "b"), fs::perms(0644));
}

TEST(OutputFileTest, ALinkIsFollowedToItsTarget) {
    TemporaryFolder folder;
    fs::create_directory(folder.path() / "real");
    fs::path target = folder.file("real/a.txt", "old");
    fs::create_symlink("real/a.txt", folder.path() / "link");
    fs::create_symlink("real/new.txt", folder.path() / "open");
    OutputFile(folder.path() / "link", {.force = true}).write("new");
    OutputFile(folder.path() / "open", {}).write("made");
    EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
    EXPECT_EQ(text_of(target), "new");
    EXPECT_EQ(text_of(folder.path() / "real/new.txt"), "made");
}

TEST(OutputFileTest, BackupsAreNumberedAndNeverLost) {
    TemporaryFolder folder;
    fs::path file = folder.file("a.yaml", "1");
    fs::permissions(file, fs::perms(0600));
    EXPECT_EQ(keep_backup(file, "1").filename(), "a.yaml.bak");
    EXPECT_EQ(keep_backup(file, "2").filename(), "a.yaml.bak.1");
    EXPECT_EQ(keep_backup(file, "3").filename(), "a.yaml.bak.2");
    EXPECT_EQ(text_of(folder.path() / "a.yaml.bak"), "1");
    EXPECT_EQ(mode_of(folder.path() / "a.yaml.bak.2"), fs::perms(0600));
}

TEST(OutputFileTest, LongNamesLoopsAndMissingFoldersAreTheUsers) {
    TemporaryFolder folder;
    fs::create_symlink("loop", folder.path() / "loop");
    for (const fs::path& path : {folder.path() / std::string(300, 'x'), folder.path() / "loop",
                                 folder.path() / "no/such/folder"})
        EXPECT_THROW(OutputFile(path, {}).write("x"), UserError) << path;
    // As long as a name may be: there must be room for the neighbour that becomes it.
    fs::path longest = folder.path() / std::string(255, 'y');
    OutputFile(longest, {}).write("x");
    EXPECT_EQ(text_of(longest), "x");
}

TEST(OutputFileTest, AFolderIsNotStandardOutput) {
    EXPECT_THROW((void)output_folder("-"), UserError);
    EXPECT_EQ(output_folder("runs/a"), "runs/a");
    EXPECT_TRUE(OutputFile("-", {}).is_stdout());
}

}  // namespace
}  // namespace saturate
