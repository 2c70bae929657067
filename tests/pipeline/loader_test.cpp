// SPDX-License-Identifier: Apache-2.0
#include "pipeline/loader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/error.h"
#include "pipeline/synthetic.h"

namespace saturate {
namespace {

std::shared_ptr<const SampleSource> synthetic(std::int64_t size) {
    return std::make_shared<SyntheticSource>(SyntheticSettings{
        .size = size,
        .fields = {{.name = "value", .shape = {5}}, {.name = "label", .element = Element::int64}}});
}

// What came out of one batch, copied.
struct Seen {
    std::int64_t epoch = 0, index = 0;
    std::vector<std::int64_t> samples;
    std::string bytes;
    bool operator==(const Seen&) const = default;
};

Seen seen(const Batch& batch) {
    Seen out{.epoch = batch.epoch, .index = batch.index};
    out.samples.assign(batch.samples.begin(), batch.samples.end());
    for (const FieldView& field : batch.fields) {
        out.bytes.append(reinterpret_cast<const char*>(field.data),
                         field.spec->bytes() * static_cast<std::size_t>(batch.size));
    }
    return out;
}

std::vector<Seen> take(Loader& loader, std::int64_t batches) {
    std::vector<Seen> out;
    while (static_cast<std::int64_t>(out.size()) < batches) {
        if (std::optional<Batch> batch = loader.next()) out.push_back(seen(*batch));
    }
    return out;
}

TEST(LoaderTest, BatchesAreTheSameForAnyNumberOfWorkers) {
    NullRecorder recorder;
    std::vector<Seen> expected;
    for (int workers : {0, 1, 2, 3, 8, -1}) {
        Loader loader(synthetic(103), {.batch_size = 8, .workers = workers, .seed = 7}, recorder);
        EXPECT_EQ(loader.batches_per_epoch(), 12);
        std::vector<Seen> got = take(loader, 30);
        if (expected.empty()) expected = got;
        EXPECT_EQ(got, expected) << workers << " workers";
    }
    EXPECT_NE(expected[0].samples, expected[12].samples) << "the second epoch has another order";
}

TEST(LoaderTest, EveryEpochHoldsEverySampleOnce) {
    NullRecorder recorder;
    Loader loader(synthetic(103), {.batch_size = 8, .workers = 2, .drop_last = false}, recorder);
    for (int epoch = 0; epoch < 3; ++epoch) {
        std::set<std::int64_t> samples;
        std::int64_t count = 0;
        while (std::optional<Batch> batch = loader.next()) {
            EXPECT_EQ(batch->epoch, epoch);
            EXPECT_EQ(batch->size, batch->index == 12 ? 7 : 8);
            samples.insert(batch->samples.begin(), batch->samples.end());
            count += batch->size;
        }
        EXPECT_EQ(samples.size(), 103u);
        EXPECT_EQ(count, 103);
    }
}

TEST(LoaderTest, ResumesInMidEpochWithOtherWorkers) {
    NullRecorder recorder;
    LoaderSettings settings{.batch_size = 8, .workers = 2, .drop_last = false, .seed = 3};
    Loader whole(synthetic(50), settings, recorder);
    std::vector<Seen> expected = take(whole, 21);
    for (std::int64_t stop : {0, 1, 6, 7, 8, 13, 14, 20}) {
        Loader first(synthetic(50), settings, recorder);
        (void)take(first, stop);
        LoaderState state = first.state();
        for (int workers : {0, 1, 3}) {
            LoaderSettings other = settings;
            other.workers = workers;
            Loader second(synthetic(50), other, recorder, state);
            std::vector<Seen> rest(expected.begin() + stop, expected.end());
            EXPECT_EQ(take(second, 21 - stop), rest) << "from " << stop;
        }
    }
}

TEST(LoaderTest, EndOfEpochIsSaidOnceAlsoAfterResume) {
    NullRecorder recorder;
    Loader loader(synthetic(16), {.batch_size = 8, .workers = 1}, recorder);
    EXPECT_TRUE(loader.next() && loader.next());
    EXPECT_EQ(loader.state(), (LoaderState{.epoch = 0, .batch = 2}));
    Loader resumed(synthetic(16), {.batch_size = 8, .workers = 1}, recorder, loader.state());
    for (Loader* each : {&loader, &resumed}) {
        EXPECT_FALSE(each->next());
        EXPECT_EQ(each->state(), (LoaderState{.epoch = 1, .batch = 0}));
        EXPECT_EQ(each->next()->epoch, 1);
    }
}

TEST(LoaderTest, BatchesMayBeHeldAndOutliveTheLoader) {
    NullRecorder recorder;
    std::vector<Batch> held;
    std::vector<Seen> expected;
    {
        Loader plain(synthetic(400), {.batch_size = 4, .workers = 0, .seed = 1}, recorder);
        expected = take(plain, 40);
        Loader loader(synthetic(400), {.batch_size = 4, .workers = 2, .seed = 1}, recorder);
        while (held.size() < 40) held.push_back(*loader.next());
    }
    for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(seen(held[i]), expected[i]);
}

TEST(LoaderTest, TheRingStopsGrowing) {
    NullRecorder recorder;
    Loader loader(synthetic(1000), {.batch_size = 10, .workers = 2, .prefetch_factor = 2},
                  recorder);
    (void)take(loader, 500);
    std::uint64_t slab = 4096;  // 10 samples of 28 bytes, in pages
    EXPECT_LE(loader.stats().memory_bytes, 6 * slab);
    EXPECT_EQ(loader.stats().samples, 5000);
}

TEST(LoaderTest, MemoryStaysBelowItsLimit) {
    NullRecorder recorder;
    Loader loader(synthetic(1000), {.batch_size = 10, .workers = 4, .prefetch_bytes = 3 * 4096},
                  recorder);
    (void)take(loader, 300);
    EXPECT_LE(loader.stats().memory_bytes, 3u * 4096);
    try {
        Loader small(synthetic(1000), {.batch_size = 10, .prefetch_bytes = 5000}, recorder);
        FAIL() << "5000 bytes hold no two batches";
    } catch (const UserError& error) {
        EXPECT_STREQ(error.what(),
                     "error: two batches of 10 take 8.0 KiB\n"
                     "  expected: at most 4.9 KiB (prefetch_bytes)\n"
                     "  fix:      a smaller batch_size or a larger limit");
    }
}

TEST(LoaderTest, TooFewSamplesForABatchIsSaid) {
    NullRecorder recorder;
    try {
        Loader loader(synthetic(7), {.batch_size = 8}, recorder);
        FAIL() << "7 samples are no batch of 8";
    } catch (const UserError& error) {
        EXPECT_STREQ(error.what(),
                     "error: 7 samples on 1 process are not enough for a batch of 8\n"
                     "  expected: a batch size of at most 7\n"
                     "  fix:      a smaller batch_size, or drop_last: false");
    }
}

TEST(LoaderTest, APositionBehindTheEpochIsSaid) {
    NullRecorder recorder;
    try {
        Loader loader(synthetic(16), {.batch_size = 8}, recorder, {.epoch = 1, .batch = 3});
        FAIL() << "an epoch has two batches";
    } catch (const UserError& error) {
        EXPECT_STREQ(error.what(),
                     "error: the saved position is batch 3 of epoch 1\n"
                     "  expected: 0 to 2 batches in an epoch\n"
                     "  fix:      resume with the data and batch_size of the saved run");
    }
}

TEST(LoaderTest, RanksShareTheEpochInEqualParts) {
    NullRecorder recorder;
    std::multiset<std::int64_t> samples;
    for (int rank = 0; rank < 3; ++rank) {
        Loader loader(synthetic(100),
                      {.batch_size = 8, .workers = 2, .drop_last = false, .shard = {rank, 3}},
                      recorder);
        EXPECT_EQ(loader.batches_per_epoch(), 5);
        while (std::optional<Batch> batch = loader.next())
            samples.insert(batch->samples.begin(), batch->samples.end());
    }
    // 3 times 34: all samples, two of them twice.
    EXPECT_EQ(samples.size(), 102u);
    EXPECT_EQ(std::set<std::int64_t>(samples.begin(), samples.end()).size(), 100u);
}

TEST(LoaderTest, LeavesANoteInTheRunRecord) {
    MemoryRecorder recorder;
    {
        Loader loader(synthetic(64), {.batch_size = 8, .workers = 1}, recorder);
        (void)take(loader, 8);
    }
    ASSERT_EQ(recorder.events.size(), 1u);
    EXPECT_EQ(recorder.events[0].kind, EventKind::note);
    EXPECT_TRUE(recorder.events[0].text.starts_with("loader: 64 samples, waited for "));
    EXPECT_EQ(recorder.events[0].values["loader"]["samples"].integer(), 64);
    EXPECT_EQ(recorder.events[0].values["loader"]["batches"].integer(), 8);
}

}  // namespace
}  // namespace saturate
