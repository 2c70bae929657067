// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "base/csv.h"
#include "base/error.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

TEST(FileTest, RefusesWhatIsLargerThanTheLimitWithoutReadingItAll) {
    TemporaryFolder folder;
    fs::path file = folder.file("big", "");
    fs::resize_file(file, 1ull << 40);  // sparse: reading it whole would not end
    EXPECT_THROW((void)read_file(file, 1000, "a file"), UserError);
}

TEST(FileTest, ReadsFilesThatTellNoSize) {
    EXPECT_FALSE(read_if_there("/proc/self/status").empty());
}

TEST(FileTest, WhatIsNotThereIsEmpty) {
    EXPECT_EQ(read_if_there("/no/such/file"), "");
    EXPECT_EQ(read_start_if_there("/no/such/file", 10), "");
    EXPECT_EQ(read_end_if_there("/no/such/file", 10), "");
}

TEST(FileTest, ReadsOnlyTheStartOrTheEnd) {
    TemporaryFolder folder;
    fs::path file = folder.file("log", "first line, last line");
    EXPECT_EQ(read_start_if_there(file, 10), "first line");
    EXPECT_EQ(read_end_if_there(file, 9), "last line");
    EXPECT_EQ(read_end_if_there(file, 1000), "first line, last line");
}

TEST(FileTest, ReplacesWholeAndKeepsPermissions) {
    TemporaryFolder folder;
    fs::path file = folder.file("a.txt", "old");
    fs::permissions(file, fs::perms(0600));
    write_file_whole(file, "new");
    EXPECT_EQ(read_file(file, 100, "a file"), "new");
    EXPECT_EQ(fs::status(file).permissions(), fs::perms(0600));
}

TEST(FileTest, AWriteThatFailsInTheMiddleLeavesTheOldFileAndNothingElse) {
    TemporaryFolder folder;
    fs::path file = folder.file("a.txt", "old");
    // A limit on file size stands in for a full disk: the write breaks off after 4,096 bytes.
    struct rlimit before {};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    struct rlimit small = before;
    small.rlim_cur = 4096;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    EXPECT_THROW(write_file_whole(file, std::string(100000, 'x')), MachineError);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, old_handler);
    EXPECT_EQ(read_file(file, 100, "a file"), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(CsvTest, ReadsQuotesCommasAndLineEndsInCells) {
    auto rows = parse_csv("a,b\r\n\"x, \"\"y\"\"\",\"1\n2\"\n\nlast,\n", "t.csv");
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0]["a"], "x, \"y\"");
    EXPECT_EQ(rows[0]["b"], "1\n2");
    EXPECT_EQ(rows[1]["b"], "");
}

TEST(CsvTest, SaysWhichLineIsWrong) {
    try {
        (void)parse_csv("a,b\n1,2\n1\n", "t.csv");
        FAIL();
    } catch (const UserError& error) {
        EXPECT_STREQ(error.what(), "error: t.csv:3: 1 cells\n  expected: 2, as in the header");
    }
    EXPECT_THROW((void)parse_csv("a\n\"open\n", "t.csv"), UserError);
}

TEST(ErrorTest, ShowsPlaceFoundExpectedAndFix) {
    UserError error({.where = {"job.yaml", 14},
                     .found = "data.workers is 96",
                     .expected = "1 to 32",
                     .fix = "workers: auto"});
    EXPECT_STREQ(
        error.what(),
        "error: job.yaml:14: data.workers is 96\n  expected: 1 to 32\n  fix:      workers: auto");
}

}  // namespace
}  // namespace saturate
