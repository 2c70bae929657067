// SPDX-License-Identifier: Apache-2.0
// What goes wrong while samples are loaded, and that a loader stops at any moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <new>
#include <set>

#include "base/error.h"
#include "pipeline/fake_source.h"
#include "pipeline/loader.h"
#include "pipeline/stops.h"

namespace saturate {
namespace {

using testing::HasSubstr;

using Batches = std::vector<std::vector<std::int64_t>>;

Batches take(Loader& loader, std::size_t count) {
    Batches out;
    while (out.size() < count) {
        if (std::optional<Batch> batch = loader.next())
            out.emplace_back(batch->samples.begin(), batch->samples.end());
    }
    return out;
}

std::shared_ptr<FakeSource> with_bad(std::int64_t size, std::set<std::int64_t> bad) {
    return std::make_shared<FakeSource>(size, [bad](std::int64_t index) {
        if (bad.count(index)) throw BadSample("file-" + std::to_string(index), "truncated");
    });
}

template <typename Error>
std::string error_of(Loader& loader, int batches = 1000) {
    try {
        for (int i = 0; i < batches; ++i) (void)loader.next();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(FaultTest, BadSamplesAreReplacedTheSameWayForAnyWorkers) {
    Batches expected;
    for (int workers : {0, 1, 2, 4}) {
        MemoryRecorder recorder;
        std::int64_t counted = 0;
        {
            Loader loader(with_bad(60, {3, 17, 41}),
                          {.batch_size = 6, .workers = workers, .seed = 5}, recorder);
            Batches got = take(loader, 40);  // four epochs
            if (expected.empty()) expected = got;
            EXPECT_EQ(got, expected) << workers << " workers";
            counted = loader.stats().bad_samples;
        }
        for (const auto& batch : expected) {
            for (std::int64_t sample : batch)
                EXPECT_TRUE(sample != 3 && sample != 17 && sample != 41);
        }
        EXPECT_EQ(counted, 3) << "each counts once, whatever the epochs";
        std::vector<std::string> named;
        for (const EventRecord& event : recorder.events) {
            if (event.kind == EventKind::bad_sample) named.push_back(event.text);
        }
        EXPECT_THAT(named, testing::UnorderedElementsAre("file-3: truncated", "file-17: truncated",
                                                         "file-41: truncated"));
    }
}

TEST(FaultTest, TooManyBadSamplesEndTheRun) {
    NullRecorder recorder;
    for (int workers : {0, 2}) {
        Loader loader(with_bad(50, {1, 2, 3}),
                      {.batch_size = 5, .workers = workers, .shuffle = false, .bad_samples_max = 2},
                      recorder);
        std::string said = error_of<UserError>(loader);
        // Which of them is the third depends on the substitutes that were tried.
        EXPECT_THAT(said, HasSubstr("truncated (3 samples cannot be used)\n"
                                    "  expected: at most 2 (bad_samples_max)\n"
                                    "  fix:      repair or remove them; each is named in the run "
                                    "record's events"));
    }
}

TEST(FaultTest, NoGoodSampleAtAllIsSaid) {
    NullRecorder recorder;
    Loader loader(with_bad(3, {0, 1, 2}), {.batch_size = 1, .workers = 1}, recorder);
    EXPECT_THAT(error_of<UserError>(loader),
                HasSubstr("truncated (none of the 3 samples can be used)\n"
                          "  fix:      check the path of the data"));
}

// Those of weight 0 are never drawn, so they cannot stand in for the others.
TEST(FaultTest, NoGoodSampleOfAnyWeightIsSaid) {
    NullRecorder recorder;
    for (int workers : {0, 2}) {
        Loader loader(with_bad(6, {1, 4}),
                      {.batch_size = 2, .workers = workers, .weights = {0, 1, 0, 0, 3, 0}},
                      recorder);
        EXPECT_THAT(error_of<UserError>(loader),
                    HasSubstr("truncated (none of the 2 samples can be used)"));
    }
    // One that chance would take years to find stands in all the same.
    Loader loader(with_bad(4, {1}), {.batch_size = 2, .workers = 0, .weights = {0, 1, 0, 1e-30}},
                  recorder);
    EXPECT_EQ(take(loader, 1), (Batches{{3, 3}}));
}

TEST(FaultTest, AWorkersErrorComesOnceWithTheSamplesNameWhenItsBatchIsDue) {
    NullRecorder recorder;
    for (int workers : {0, 1, 3}) {
        auto source = std::make_shared<FakeSource>(40, [](std::int64_t index) {
            if (index == 25) throw std::runtime_error("the disk is on fire");
        });
        Loader loader(source, {.batch_size = 10, .workers = workers, .shuffle = false}, recorder);
        EXPECT_TRUE(loader.next()) << "what was good before it comes out";
        EXPECT_TRUE(loader.next());
        EXPECT_EQ(error_of<MachineError>(loader), "error: sample-25: the disk is on fire");
        EXPECT_THROW((void)loader.next(), Bug);
    }
}

TEST(FaultTest, NoMemoryForASampleIsTheMachinesFault) {
    NullRecorder recorder;
    auto source = std::make_shared<FakeSource>(40, [](std::int64_t) { throw std::bad_alloc(); });
    Loader loader(source, {.batch_size = 10, .workers = 1, .shuffle = false}, recorder);
    EXPECT_EQ(error_of<MachineError>(loader),
              "error: sample-0: no memory left to read this sample\n"
              "  fix:      fewer workers, or a smaller batch_size");
}

TEST(FaultTest, NoMemoryForASlabIsSaid) {
    class NoMemory final : public SlabMemory {
      public:
        void* allocate(std::size_t) override { throw std::bad_alloc(); }
        void release(void*, std::size_t) noexcept override {}
    };
    NullRecorder recorder;
    for (int workers : {0, 2}) {
        Loader loader(
            std::make_shared<FakeSource>(40),
            {.batch_size = 10, .workers = workers, .memory = std::make_shared<NoMemory>()},
            recorder);
        EXPECT_EQ(error_of<MachineError>(loader),
                  "error: no memory for a batch of 10: 4.0 KiB after 0 others\n"
                  "  fix:      a smaller batch_size or prefetch_factor");
    }
}

TEST(FaultTest, BusyStorageIsTriedAgain) {
    NullRecorder recorder;
    std::atomic<int> asked = 0;
    auto source = std::make_shared<FakeSource>(20, [&](std::int64_t index) {
        if (index == 7 && ++asked <= 3) throw BusySample("file-7", "timed out");
    });
    Loader loader(source,
                  {.batch_size = 5, .workers = 2, .retry_pause = std::chrono::milliseconds(0)},
                  recorder);
    Batches epoch = take(loader, 4);
    std::set<std::int64_t> samples;
    for (const auto& batch : epoch) samples.insert(batch.begin(), batch.end());
    EXPECT_EQ(samples.size(), 20u);
    EXPECT_EQ(loader.stats().retries, 3);
    EXPECT_EQ(loader.stats().bad_samples, 0);
}

TEST(FaultTest, StorageThatStaysBusyMakesABadSample) {
    MemoryRecorder recorder;
    auto source = std::make_shared<FakeSource>(20, [](std::int64_t index) {
        if (index == 7) throw BusySample("file-7", "timed out");
    });
    Loader loader(source,
                  {.batch_size = 5, .workers = 2, .retry_pause = std::chrono::milliseconds(0)},
                  recorder);
    (void)take(loader, 4);
    EXPECT_EQ(loader.stats().bad_samples, 1);
}

TEST(FaultTest, NoAnswerFromStorageEndsTheRunAndNamesTheSample) {
    NullRecorder recorder;
    std::latch let_go(1);
    auto source = std::make_shared<FakeSource>(20, [&](std::int64_t index) {
        if (index == 3) let_go.wait();
    });
    Loader loader(source,
                  {.batch_size = 5,
                   .workers = 1,
                   .shuffle = false,
                   .sample_max = std::chrono::milliseconds(5)},
                  recorder);
    EXPECT_EQ(error_of<MachineError>(loader),
              "error: sample-3: no answer from storage for 0.005 s\n"
              "  fix:      check the disk or the network file system");
    let_go.count_down();
}

TEST(FaultTest, StopsDuringALongPause) {
    NullRecorder recorder;
    std::latch began(1);
    std::atomic<bool> first = true;
    auto source = std::make_shared<FakeSource>(20, [&](std::int64_t) {
        if (first.exchange(false)) began.count_down();
        throw BusySample("x", "busy");
    });
    Loader loader(source, {.batch_size = 5, .workers = 2, .retry_pause = std::chrono::hours(1)},
                  recorder);
    began.wait();
}

TEST(FaultTest, StopsAtRandomPoints) { EXPECT_GT(stop_at_random_points(300, 7), 0); }

TEST(FaultTest, LoadersThatFailStopToo) {
    NullRecorder recorder;
    for (int i = 0; i < 200; ++i) {
        auto source = std::make_shared<FakeSource>(40, [&](std::int64_t index) {
            if (index % 5 == i % 5) throw std::runtime_error("no");
        });
        Loader loader(source, {.batch_size = 4, .workers = 3}, recorder);
        EXPECT_NE(error_of<MachineError>(loader), "");
    }
}

}  // namespace
}  // namespace saturate
