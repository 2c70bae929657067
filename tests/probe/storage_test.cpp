// SPDX-License-Identifier: Apache-2.0
// Read speed of a folder, without asserting how fast: what is read, what is left out, and that it
// ends.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/machine.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

// Time enough that only bytes and entries end it.
constexpr ReadBudget kAmple{.time = std::chrono::milliseconds(60000), .smallest_file = 1};

TEST(StorageTest, ReadsEveryFileOfTheFolderOnce) {
    TemporaryFolder folder;
    folder.file("a.bin", std::string(3 << 20, 'a'));
    folder.file("deep/er/b.bin", std::string((1 << 20) + 17, 'b'));
    folder.file("deep/empty", "");
    StorageFacts facts = probe_storage(folder.path(), kAmple);
    EXPECT_EQ(facts.read_bytes, (4u << 20) + 17);
    ASSERT_TRUE(facts.read_mb_per_second);
    EXPECT_GT(*facts.read_mb_per_second, 0);
    EXPECT_LE(facts.slowest_mb_per_second, facts.fastest_mb_per_second);
    EXPECT_GE(facts.parts, 1);
    EXPECT_TRUE(facts.free_bytes);
    EXPECT_EQ(facts.unknown_because, "");
}

TEST(StorageTest, LinksThatGoRoundInCirclesEnd) {
    TemporaryFolder folder;
    folder.file("sub/a.bin", std::string(1 << 20, 'a'));
    fs::create_directory_symlink(folder.path(), folder.path() / "sub/up");
    fs::create_symlink("nowhere", folder.path() / "dangling");
    fs::create_symlink("self", folder.path() / "self");
    EXPECT_EQ(probe_storage(folder.path(), kAmple).read_bytes, 1u << 20);
}

TEST(StorageTest, OnlyRegularFilesWithContentAreRead) {
    TemporaryFolder folder;
    ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
    fs::path sparse = folder.file("sparse", "x");
    fs::resize_file(sparse, 1 << 30);
    StorageFacts facts = probe_storage(folder.path(), kAmple);
    EXPECT_EQ(facts.read_bytes, 0u);
    EXPECT_EQ(facts.read_mb_per_second, std::nullopt);
    EXPECT_EQ(facts.unknown_because, "only empty files were found");
}

TEST(StorageTest, EntriesAndBytesAreBounded) {
    TemporaryFolder folder;
    for (int i = 0; i < 50; ++i) folder.file(std::to_string(i), std::string(300000, 'x'));
    ReadBudget few = kAmple;
    few.entries = 5;
    EXPECT_EQ(probe_storage(folder.path(), few).read_bytes, 5u * 300000);
    ReadBudget short_read = kAmple;
    short_read.bytes = 1 << 20;
    StorageFacts facts = probe_storage(folder.path(), short_read);
    EXPECT_GE(facts.read_bytes, 1u << 20);
    EXPECT_LT(facts.read_bytes, (1u << 20) + 300000);
}

TEST(StorageTest, NoTimeIsNoMeasurement) {
    TemporaryFolder folder;
    folder.file("a.bin", std::string(1 << 20, 'a'));
    ReadBudget none = kAmple;
    none.time = std::chrono::milliseconds(0);
    EXPECT_EQ(probe_storage(folder.path(), none).read_mb_per_second, std::nullopt);
}

TEST(StorageTest, TooLittleToMeasureIsUnknownWithItsReason) {
    TemporaryFolder folder;
    EXPECT_EQ(probe_storage(folder.path(), kAmple).unknown_because, "only empty files were found");
    folder.file("small", std::string(1000, 'x'));
    EXPECT_EQ(probe_storage(folder.path(), kAmple).unknown_because, "only 1000 B could be read");
    EXPECT_EQ(probe_storage(folder.path(), {}).unknown_because,
              "no file of at least 1.0 MiB was found");
    StorageFacts missing = probe_storage(folder.path() / "missing", kAmple);
    EXPECT_EQ(missing.unknown_because, "there is no such folder");
    EXPECT_EQ(missing.free_bytes, std::nullopt);
    EXPECT_EQ(probe_storage(folder.path() / "small", kAmple).unknown_because,
              "there is no such folder");
}

TEST(StorageTest, UnreadableFilesAndFoldersAreLeftOut) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
    TemporaryFolder folder;
    fs::permissions(folder.file("locked.bin", std::string(1 << 20, 'x')), fs::perms::none);
    EXPECT_EQ(probe_storage(folder.path(), kAmple).unknown_because, "no file could be read");
    folder.file("closed/a.bin", std::string(1 << 20, 'x'));
    fs::permissions(folder.path() / "closed", fs::perms::none);
    EXPECT_EQ(probe_storage(folder.path() / "closed", kAmple).unknown_because,
              "the folder cannot be read");
    fs::permissions(folder.path() / "closed", fs::perms::owner_all);
}

TEST(StorageTest, MemoryIsNotTakenForADisk) {
    std::string pattern = "/dev/shm/saturate-test-XXXXXX";
    if (!::mkdtemp(pattern.data())) GTEST_SKIP() << "no /dev/shm to write to";
    {
        std::FILE* file = std::fopen((pattern + "/a.bin").c_str(), "w");
        ASSERT_TRUE(file);
        std::string content(1 << 20, 'a');
        std::fwrite(content.data(), 1, content.size(), file);
        std::fclose(file);
    }
    StorageFacts facts = probe_storage(pattern, kAmple);
    fs::remove_all(pattern);
    EXPECT_EQ(facts.read_bytes, 1u << 20);
    EXPECT_TRUE(facts.from_page_cache);
}

}  // namespace
}  // namespace saturate
