// SPDX-License-Identifier: Apache-2.0
#include "pipeline/governor.h"

#include <gtest/gtest.h>

#include "pipeline/loader.h"

namespace saturate {
namespace {

// One second in which workers need `demand` cores' worth of work, of which `cpu` is on a core.
WorkerInterval second(const Governor& governor, double demand, double cpu = 1.0) {
    double busy = std::min<double>(demand, governor.workers());
    double wait = demand > governor.workers() ? 1 - governor.workers() / demand : 0;
    return {.wall_ns = 1'000'000'000,
            .consumer_wait_ns = static_cast<std::int64_t>(wait * 1e9),
            .busy_ns = static_cast<std::int64_t>(busy * 1e9),
            .cpu_ns = static_cast<std::int64_t>(busy * cpu * 1e9)};
}

int after(Governor& governor, int seconds, double demand, double cpu = 1.0) {
    for (int i = 0; i < seconds; ++i) governor.decide(second(governor, demand, cpu));
    return governor.workers();
}

TEST(GovernorTest, StartsWithTheCoresAndStaysThereUnderLoad) {
    Governor governor(8);
    EXPECT_EQ(governor.workers(), 8);
    EXPECT_EQ(after(governor, 50, 20), 8);
}

TEST(GovernorTest, GivesCoresBackThatNobodyNeeds) {
    Governor governor(8);
    int workers = after(governor, 50, 1.5);
    EXPECT_GE(workers, 2);
    EXPECT_LE(workers, 4);
}

TEST(GovernorTest, TakesThemAgainWhenTheTrainerWaits) {
    Governor governor(8);
    after(governor, 50, 1.5);
    EXPECT_GE(after(governor, 20, 6), 6);
}

TEST(GovernorTest, GoesBeyondTheCoresOnlyWhileWorkersWaitForStorage) {
    Governor governor(2);
    EXPECT_EQ(after(governor, 50, 20, 0.1), 8);
    Governor busy(2);
    EXPECT_EQ(after(busy, 50, 20, 0.9), 2);
}

TEST(WhySlowTest, NamesTheDearestPartAndWhatToDo) {
    LoaderStats stats{.decode_ns = 71,
                      .transform_ns = 20,
                      .busy_ns = 100,
                      .consumer_wait_ns = 30,
                      .elapsed_ns = 50,
                      .workers = 2,
                      .cores = 2};
    EXPECT_EQ(why_slow(stats),
              "decode 71 %, 2 of 2 cores full: fewer pixels, cache, or more cores");
    stats.workers = 1;
    stats.busy_ns = 100;
    stats.elapsed_ns = 100;
    EXPECT_EQ(why_slow(stats),
              "decode 71 %, 1 worker 100 % busy on 2 cores: more workers, fewer pixels, cache");
    stats.workers = 0;
    EXPECT_EQ(why_slow(stats),
              "decode 71 %, no workers: num_workers: auto loads while the model trains");
    stats.workers = 2;
    stats.elapsed_ns = 100;
    EXPECT_EQ(why_slow(stats),
              "decode 71 %, 2 workers 50 % busy on 2 cores: a larger prefetch_factor");
    stats.read_ns = 300;
    stats.busy_ns = 400;
    stats.elapsed_ns = 200;
    EXPECT_EQ(why_slow(stats),
              "read 75 %, 2 of 2 cores full: faster storage, cache, or more cores");
}

TEST(WhySlowTest, IsSilentWhenNobodyWaits) {
    EXPECT_EQ(why_slow({.decode_ns = 71,
                        .busy_ns = 100,
                        .consumer_wait_ns = 1,
                        .elapsed_ns = 100,
                        .workers = 2,
                        .cores = 2}),
              "");
}

}  // namespace
}  // namespace saturate
