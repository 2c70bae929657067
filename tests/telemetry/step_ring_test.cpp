// SPDX-License-Identifier: Apache-2.0
#include "telemetry/step_ring.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/ring_file.h"
#include "support/run.h"

namespace saturate {
namespace {

std::vector<std::int64_t> starts(StepRing& ring, bool all) {
    std::vector<std::int64_t> out;
    ring.read(all, [&](const RingRecord& record) { out.push_back(record.start_ns); });
    return out;
}

TEST(StepRingTest, GivesWhatWasThereOneReadAgoAndAllAtTheEnd) {
    TemporaryFolder folder;
    RingFile file(64);
    file.add(10);
    file.add(20);
    file.save(folder.path() / "ring.1");
    auto ring = StepRing::open(folder.path() / "ring.1");
    ASSERT_TRUE(ring);
    EXPECT_EQ(starts(*ring, false), (std::vector<std::int64_t>{}));
    file.add(30);
    file.save(folder.path() / "ring.1");
    EXPECT_EQ(starts(*ring, false), (std::vector<std::int64_t>{10, 20}));
    EXPECT_EQ(starts(*ring, true), (std::vector<std::int64_t>{30}));
    EXPECT_EQ(starts(*ring, true), (std::vector<std::int64_t>{}));
    EXPECT_EQ(ring->lost(), 0u);
    EXPECT_EQ(ring->pid(), 4711);
    EXPECT_EQ(ring->rank(), 3);
    EXPECT_EQ(ring->world_size(), 8);
}

TEST(StepRingTest, CountsWhatWasOverwritten) {
    TemporaryFolder folder;
    RingFile file(8);
    for (int i = 0; i < 20; ++i) file.add(i);
    file.save(folder.path() / "ring.1");
    auto ring = StepRing::open(folder.path() / "ring.1");
    ASSERT_TRUE(ring);
    EXPECT_EQ(starts(*ring, true), (std::vector<std::int64_t>{14, 15, 16, 17, 18, 19}));
    EXPECT_EQ(ring->lost(), 14u);
}

// What is at `offset` of a file that another process may have mapped.
template <typename T>
T value_in(const std::filesystem::path& path, std::streamoff offset) {
    T value{};
    std::ifstream file(path, std::ios::binary);
    file.seekg(offset).read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
}

TEST(StepRingTest, AWindowIsOpenUntilItIsClosed) {
    TemporaryFolder folder;
    RingFile(8).save(folder.path() / "ring.1");
    auto ring = StepRing::open(folder.path() / "ring.1");
    EXPECT_TRUE(ring->open_window(1234));
    EXPECT_EQ(value_in<std::int64_t>(folder.path() / "ring.1", 80), 1234);
    ring->close_window();
    EXPECT_EQ(value_in<std::int64_t>(folder.path() / "ring.1", 80), 0);
}

TEST(StepRingTest, NoWindowOpensBesideTheScriptsProfilerOrAfterItsEnd) {
    TemporaryFolder folder;
    for (std::size_t mark : {72, 76}) {
        RingFile file(8);
        file.put<std::uint8_t>(mark, 1);
        file.save(folder.path() / "ring.1");
        auto ring = StepRing::open(folder.path() / "ring.1");
        EXPECT_FALSE(ring->open_window(1234)) << mark;
        EXPECT_EQ(value_in<std::int64_t>(folder.path() / "ring.1", 80), 0) << mark;
        std::filesystem::remove(folder.path() / "ring.1");
    }
}

TEST(StepRingTest, RefusesWhatIsNoRing) {
    TemporaryFolder folder;
    EXPECT_FALSE(StepRing::open(folder.path() / "none"));
    EXPECT_FALSE(StepRing::open(folder.file("short", "SATRING1")));
    RingFile newer(8);
    newer.put<std::uint32_t>(8, 2);
    newer.save(folder.path() / "newer");
    EXPECT_FALSE(StepRing::open(folder.path() / "newer"));
    RingFile lying(8);
    lying.put<std::uint64_t>(16, 1u << 30);
    lying.save(folder.path() / "lying");
    EXPECT_FALSE(StepRing::open(folder.path() / "lying"));
}

TEST(StepRingTest, TellsWhatABatchTakesPerLoaderAndWorker) {
    TemporaryFolder folder;
    RingFile file(8);
    std::size_t slot = 4096 + (2 * 32 + 5) * 64;  // loader 2, worker 4
    for (std::size_t i = 0; i < 7; ++i) file.put<std::uint64_t>(slot + 8 * i, 100 + i);
    file.save(folder.path() / "ring.1");
    auto ring = StepRing::open(folder.path() / "ring.1");
    ASSERT_TRUE(ring);
    std::vector<FetchTotals> fetches = ring->fetches();
    ASSERT_EQ(fetches.size(), 1u);
    EXPECT_EQ(fetches[0].loader, 2);
    EXPECT_EQ(fetches[0].worker, 4);
    EXPECT_EQ(fetches[0].batches, 100u);
    EXPECT_EQ(fetches[0].wall_ns, 101u);
    EXPECT_EQ(fetches[0].cpu_ns, 105u);
    EXPECT_EQ(fetches[0].delay_ns, 106u);
}

}  // namespace
}  // namespace saturate
