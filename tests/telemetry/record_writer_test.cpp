// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "support/run.h"
#include "telemetry/record_reader.h"
#include "telemetry/some_info.h"

namespace saturate {
namespace {

using testing::IsEmpty;

TEST(RecordWriterTest, RefusesAFolderThatHoldsSomething) {
    TemporaryFolder folder;
    folder.file("run/old.txt", "x");
    try {
        RecordWriter writer(folder.path() / "run", some_info());
        FAIL() << "no error";
    } catch (const UserError& error) {
        EXPECT_EQ(error.what(), "error: " + (folder.path() / "run").string() +
                                    ": this folder is not empty\n"
                                    "  expected: a new or empty folder for the run record\n"
                                    "  fix:      name another one, or remove it first");
    }
}

TEST(RecordWriterTest, WhatManyThreadsRecordIsAllThere) {
    TemporaryFolder folder;
    constexpr int kThreads = 4, kEach = 2000;
    {
        RecordWriter writer(folder.path() / "run", some_info(), {.flush_milliseconds = 1});
        std::vector<std::jthread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&, t] {
                for (int i = 0; i < kEach; ++i) {
                    writer.step({.step = t * kEach + i, .start_ns = i});
                    if (i % 100 == 0) writer.event({.time_ns = i, .text = "tick"});
                }
            });
        }
        threads.clear();
        writer.flush();
        EXPECT_EQ(writer.drops().steps, 0u);
        EXPECT_EQ(read_run(folder.path() / "run").steps.size(), kThreads * kEach);
        writer.finish({});
    }
    EXPECT_EQ(read_run(folder.path() / "run").events.size(), kThreads * kEach / 100);
}

TEST(RecordWriterTest, WhatDoesNotFitIsDroppedAndCounted) {
    TemporaryFolder folder;
    std::uint64_t dropped = 0;
    {
        // One place and a writer that looks rarely: whatever comes faster than it cannot fit.
        RecordWriter writer(folder.path() / "run", some_info(),
                            {.steps_max = 1, .others_max = 1, .flush_milliseconds = 60'000});
        writer.flush();
        for (int i = 0; i < 100'000; ++i) writer.step({.step = i, .start_ns = i});
        dropped = writer.drops().steps;
        EXPECT_GT(dropped, 0u);
        writer.finish({});
    }
    RunRecord run = read_run(folder.path() / "run");
    EXPECT_EQ(run.summary->dropped_steps, dropped);
    EXPECT_EQ(run.steps.size() + dropped, 100'000u);
}

TEST(RecordWriterTest, AfterTheEndNothingIsTaken) {
    TemporaryFolder folder;
    RecordWriter writer(folder.path() / "run", some_info());
    writer.finish({});
    writer.step({.step = 1});
    EXPECT_EQ(writer.drops().steps, 1u);
    EXPECT_THAT(read_run(folder.path() / "run").steps, IsEmpty());
}

TEST(RecordWriterTest, WithoutFinishTheRecordIsThereButHasNoSummary) {
    TemporaryFolder folder;
    { RecordWriter(folder.path() / "run", some_info()).step({.step = 1}); }
    RunRecord run = read_run(folder.path() / "run");
    EXPECT_EQ(run.steps.size(), 1u);
    EXPECT_FALSE(run.summary);
}

// A limit on the size of files stands for a full disk: the write fails the same way.
class FullDisk {
  public:
    FullDisk() {
        ::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &before_);
        rlimit tight = before_;
        tight.rlim_cur = 1000;
        ::setrlimit(RLIMIT_FSIZE, &tight);
    }
    ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;

  private:
    rlimit before_{};
};

TEST(RecordWriterTest, AFullDiskIsSaidAndWhatWasWaitingIsWrittenWhenThereIsRoomAgain) {
    TemporaryFolder folder;
    RecordWriter writer(folder.path() / "run", some_info());
    std::optional<FullDisk> disk(std::in_place);
    for (int i = 0; i < 100; ++i) writer.step({.step = i, .start_ns = i});
    writer.flush();
    EXPECT_EQ(writer.failure(), (folder.path() / "run/steps.jsonl").string() + ": File too large");
    disk.reset();
    writer.flush();
    EXPECT_EQ(writer.failure(), "");
    writer.finish({});
    RunRecord run = read_run(folder.path() / "run");
    EXPECT_EQ(run.steps.size(), 100u);
    EXPECT_THAT(run.notes, IsEmpty());
}

TEST(RecordWriterTest, ADiskThatStaysFullIsAnErrorAtTheEnd) {
    TemporaryFolder folder;
    RecordWriter writer(folder.path() / "run", some_info());
    std::optional<FullDisk> disk(std::in_place);
    for (int i = 0; i < 100; ++i) writer.step({.step = i, .start_ns = i});
    std::string said;
    try {
        writer.finish({});
    } catch (const MachineError& error) {
        said = error.what();
    }
    disk.reset();
    EXPECT_EQ(said, "error: the run record is incomplete: " +
                        (folder.path() / "run/steps.jsonl").string() +
                        ": File too large\n  expected: free space on the disk");
    EXPECT_GT(writer.drops().steps, 0u);
    EXPECT_FALSE(read_run(folder.path() / "run").steps.empty());
}

}  // namespace
}  // namespace saturate
