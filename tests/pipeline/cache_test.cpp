// SPDX-License-Identifier: Apache-2.0
#include "pipeline/cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "pipeline/loader.h"
#include "pipeline/random.h"
#include "support/run.h"

namespace saturate {
namespace {

// Prepares its index in 100 bytes and counts how often; finish() adds what is random.
class CountingSource final : public CacheableSource {
  public:
    explicit CountingSource(std::string identity = "v1") : identity_(std::move(identity)) {}
    [[nodiscard]] std::int64_t size() const override { return 64; }
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override { return fields_; }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override {
        return std::make_unique<Scratch>();
    }
    void write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
               SampleCost& cost) const override {
        std::vector<std::byte> prepared;
        prepare(draw.index, scratch, prepared, cost);
        finish(draw, prepared, scratch, places, cost);
    }
    [[nodiscard]] std::string name_of(std::int64_t) const override { return "x"; }
    void prepare(std::int64_t index, Scratch&, std::vector<std::byte>& prepared,
                 SampleCost&) const override {
        ++prepared_count;
        prepared.assign(100, static_cast<std::byte>(index));
    }
    void finish(const SampleDraw& draw, std::span<const std::byte> prepared, Scratch&,
                std::span<std::byte* const> places, SampleCost&) const override {
        ASSERT_EQ(prepared.size(), 100u);
        std::uint64_t value = static_cast<std::uint64_t>(prepared[99]) ^
                              mix(draw.seed, static_cast<std::uint64_t>(draw.epoch)) << 8;
        std::memcpy(places[0], &value, 8);
    }
    [[nodiscard]] std::string identity() const override { return identity_; }

    mutable std::atomic<int> prepared_count = 0;

  private:
    std::string identity_;
    std::vector<FieldSpec> fields_ = {{.name = "v", .element = Element::int64}};
};

std::string load(const std::shared_ptr<const SampleSource>& source, int epochs,
                 std::int64_t* hits = nullptr, int workers = 2) {
    NullRecorder recorder;
    Loader loader(source, {.batch_size = 8, .workers = workers, .seed = 4}, recorder);
    std::string bytes;
    for (int epoch = 0; epoch < epochs; ++epoch) {
        while (std::optional<Batch> batch = loader.next())
            bytes.append(reinterpret_cast<const char*>(batch->fields[0].data), 64);
    }
    if (hits) *hits = loader.stats().cache_hits;
    return bytes;
}

class CacheTest : public testing::TestWithParam<CachePlace> {
  protected:
    CacheSettings settings(std::uint64_t limit) {
        return {.place = GetParam(), .limit_bytes = limit, .folder = folder.path() / "cache"};
    }
    TemporaryFolder folder;
};

TEST_P(CacheTest, PreparesOnceAndStaysRandom) {
    auto plain = std::make_shared<CountingSource>();
    auto inner = std::make_shared<CountingSource>();
    auto cached = std::make_shared<CachedSource>(inner, settings(1 << 20));
    EXPECT_EQ(load(cached, 3, nullptr, 0), load(plain, 3)) << "the cache changes nothing";
    EXPECT_EQ(inner->prepared_count, 64);
    auto shared = std::make_shared<CachedSource>(std::make_shared<CountingSource>("with workers"),
                                                 settings(1 << 20));
    EXPECT_EQ(load(shared, 3), load(plain, 3)) << "also with several threads";
    std::string batches = load(plain, 2);
    EXPECT_NE(batches.substr(0, 512), batches.substr(512)) << "the epochs differ";
}

TEST_P(CacheTest, WhatDoesNotFitIsPreparedEveryTime) {
    auto plain = std::make_shared<CountingSource>();
    auto inner = std::make_shared<CountingSource>();
    auto cached = std::make_shared<CachedSource>(inner, settings(1000));
    std::int64_t hits = 0;
    EXPECT_EQ(load(cached, 2, &hits, 0), load(plain, 2, nullptr, 0));
    EXPECT_LE(cached->used_bytes(), 1000u);
    EXPECT_GT(hits, 0);
    EXPECT_EQ(inner->prepared_count + hits, 128);
}

INSTANTIATE_TEST_SUITE_P(Places, CacheTest, testing::Values(CachePlace::memory, CachePlace::disk),
                         [](const auto& info) {
                             return info.param == CachePlace::memory ? "Memory" : "Disk";
                         });

class DiskCacheTest : public testing::Test {
  protected:
    std::shared_ptr<const CachedSource> cached(const std::shared_ptr<CountingSource>& inner,
                                               std::uint64_t limit = 1 << 20) {
        return std::make_shared<CachedSource>(
            inner, CacheSettings{CachePlace::disk, limit, folder.path()});
    }
    TemporaryFolder folder;
};

TEST_F(DiskCacheTest, ALaterRunFindsItAndAnotherSourceDoesNot) {
    auto first = std::make_shared<CountingSource>();
    std::string expected = load(cached(first), 1);
    auto second = std::make_shared<CountingSource>();
    EXPECT_EQ(load(cached(second), 1), expected);
    EXPECT_EQ(second->prepared_count, 0);
    auto other = std::make_shared<CountingSource>("v2");
    EXPECT_EQ(load(cached(other), 1), expected);
    EXPECT_EQ(other->prepared_count, 64);
}

TEST_F(DiskCacheTest, ASecondUserReadsWhatTheFirstWrites) {
    auto first = std::make_shared<CountingSource>(), second = std::make_shared<CountingSource>();
    auto writer = cached(first), reader = cached(second);
    std::string written = load(writer, 1);
    EXPECT_EQ(load(reader, 1), written);
    EXPECT_EQ(second->prepared_count, 0);
}

TEST_F(DiskCacheTest, AFlippedByteIsNoticed) {
    std::string expected = load(cached(std::make_shared<CountingSource>()), 1);
    std::filesystem::path file = std::filesystem::directory_iterator(folder.path())->path();
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(4096 + 50);  // within the first sample that was written
    stream.put('!');
    stream.close();
    auto inner = std::make_shared<CountingSource>();
    EXPECT_EQ(load(cached(inner), 1, nullptr, 0), expected);
    EXPECT_EQ(inner->prepared_count, 1);
}

TEST_F(DiskCacheTest, ATornOrForeignFileIsWrittenAnew) {
    std::string expected = load(cached(std::make_shared<CountingSource>()), 1);
    std::filesystem::path file = std::filesystem::directory_iterator(folder.path())->path();
    for (std::uintmax_t size : {0u, 10u, 100u, 5000u}) {
        std::filesystem::resize_file(file, size);
        auto inner = std::make_shared<CountingSource>();
        EXPECT_EQ(load(cached(inner), 1), expected) << size;
        EXPECT_EQ(inner->prepared_count, 64) << size;
    }
}

TEST_F(DiskCacheTest, AFolderThatCannotBeMadeIsSaid) {
    auto inner = std::make_shared<CountingSource>();
    std::filesystem::path blocked = folder.file("taken", "x");
    try {
        CachedSource source(inner, {CachePlace::disk, 1000, blocked});
        FAIL() << "a file stands where the folder should be";
    } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what())
                      .find(": cannot be opened: Not a directory\n"
                            "  expected: a place for decoded samples\n"
                            "  fix:      cache: ram, or free some space"),
                  std::string::npos)
            << error.what();
    }
}

TEST_F(DiskCacheTest, AFileThatCannotBeMadeIsNotHeld) {
    auto inner = std::make_shared<CountingSource>();
    constexpr std::uint64_t kNoFileIsSoLarge = std::uint64_t{1} << 63;
    EXPECT_THROW((void)cached(inner, kNoFileIsSoLarge), UserError);
    // Another user, who could only read it while the first held it.
    EXPECT_EQ(load(cached(inner), 2), load(std::make_shared<CountingSource>(), 2));
    EXPECT_EQ(inner->prepared_count, 64);
}

}  // namespace
}  // namespace saturate
