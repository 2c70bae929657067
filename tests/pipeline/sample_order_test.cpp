// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"

namespace saturate {
namespace {

TEST(SampleOrderTest, EveryEpochIsAPermutation) {
    for (std::int64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 64, 65, 1000, 4097}) {
        EpochOrder order(size, 42);
        std::set<std::int64_t> seen;
        for (std::int64_t place = 0; place < size; ++place) {
            std::int64_t sample = order.at(place);
            EXPECT_TRUE(sample >= 0 && sample < size);
            seen.insert(sample);
        }
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()), size);
    }
}

// Chi-squared of where each sample stands over many epochs. The statistic has mean and variance of
// k and 2 k for k degrees of freedom; five deviations is one false alarm in a million.
TEST(SampleOrderTest, EverySampleIsEquallyOftenAtEveryPlace) {
    constexpr int kSize = 12, kEpochs = 12'000;
    std::map<std::pair<std::int64_t, std::int64_t>, int> place_of, after;
    SampleOrder samples({.size = kSize, .batch_size = 1, .seed = 9});
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
        RunOrder order = samples.order(epoch);
        for (std::int64_t place = 0; place < kSize; ++place) {
            ++place_of[{place, samples.at(order, epoch, place)}];
            if (place > 0)
                ++after[{samples.at(order, epoch, place - 1), samples.at(order, epoch, place)}];
        }
    }
    double chi = 0, expected = 1.0 * kEpochs / kSize;
    for (const auto& [key, count] : place_of)
        chi += (count - expected) * (count - expected) / expected;
    double freedom = (kSize - 1.0) * (kSize - 1.0);
    EXPECT_EQ(place_of.size(), std::size_t{kSize * kSize});
    EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * freedom));
    // Which one follows which: no pairs that stay together.
    double chi_pairs = 0, expected_pairs = (kSize - 1.0) * kEpochs / (kSize * (kSize - 1.0));
    for (const auto& [key, count] : after)
        chi_pairs += (count - expected_pairs) * (count - expected_pairs) / expected_pairs;
    double freedom_pairs = kSize * (kSize - 1.0);
    EXPECT_EQ(after.size(), std::size_t{kSize * (kSize - 1)});
    EXPECT_LT(chi_pairs, freedom_pairs + 5 * std::sqrt(2 * freedom_pairs));
}

TEST(SampleOrderTest, RunsOfNeighboursMakeAPermutationToo) {
    for (std::int64_t size : {1, 31, 63, 64, 65, 96, 2048, 2049, 5000, 6176}) {
        RunOrder order(size, 32, 7);
        std::set<std::int64_t> seen;
        for (std::int64_t place = 0; place < size; ++place) {
            std::int64_t sample = order.at(place);
            EXPECT_TRUE(sample >= 0 && sample < size) << size << " " << place;
            seen.insert(sample);
        }
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()), size);
    }
}

// Of 5,000 samples in runs of 32: the first deal of 64 runs opens 64 runs and reads each to its
// end, in its order, and no two neighbours come in one batch of 64.
TEST(SampleOrderTest, ARunIsReadInItsOrderAndDealtOutOverManyBatches) {
    RunOrder order(5000, 32, 3);
    std::map<std::int64_t, std::vector<std::int64_t>> by_run;
    for (std::int64_t place = 0; place < 64 * 32; ++place) {
        std::int64_t sample = order.at(place);
        if (sample < 4992) by_run[sample / 32].push_back(sample);  // not one of the 8 that are over
    }
    EXPECT_EQ(by_run.size(), 64u);
    for (const auto& [run, samples] : by_run) {
        EXPECT_TRUE(samples.size() == 32 || samples.size() == 24) << run;
        EXPECT_TRUE(std::ranges::is_sorted(samples)) << run;
    }
    for (std::int64_t batch = 0; batch < 32; ++batch) {
        std::set<std::int64_t> runs;
        for (std::int64_t place = batch * 64; place < batch * 64 + 64; ++place)
            runs.insert(order.at(place) / 32);
        EXPECT_EQ(runs.size(), 64u);
    }
}

TEST(SampleOrderTest, WhatIsOverBehindTheLastRunIsNotAlwaysLast) {
    SampleOrder samples({.size = 100, .neighbours = 32, .batch_size = 32, .seed = 5});
    std::map<std::int64_t, int> at_the_end;
    for (int epoch = 0; epoch < 300; ++epoch) {
        RunOrder order = samples.order(epoch);
        for (std::int64_t place = 96; place < 100; ++place)
            ++at_the_end[samples.at(order, epoch, place)];
    }
    EXPECT_GE(at_the_end.size(), 12u);
    for (const auto& [sample, count] : at_the_end) EXPECT_LT(count, 200) << sample;
}

TEST(SampleOrderTest, AHundredMillionSamplesNeedNoMemory) {
    SampleOrder samples({.size = 100'000'000, .batch_size = 256});
    RunOrder order = samples.order(3);
    std::set<std::int64_t> seen;
    for (std::int64_t place = 0; place < 1000; ++place) seen.insert(samples.at(order, 3, place));
    EXPECT_EQ(seen.size(), 1000u);
    EXPECT_GT(*seen.rbegin(), 90'000'000);
}

TEST(SampleOrderTest, WeightsSayHowOftenASampleIsDrawn) {
    SampleOrder samples({.size = 4, .batch_size = 4, .weights = {0, 1, 2, 5}, .seed = 1});
    EXPECT_EQ(samples.batches_per_epoch(), 1);
    std::map<std::int64_t, int> count;
    constexpr int kEpochs = 4000;
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
        RunOrder order = samples.order(epoch);
        for (std::int64_t place = 0; place < 4; ++place) ++count[samples.at(order, epoch, place)];
    }
    EXPECT_EQ(count[0], 0);
    // Five deviations of a binomial count.
    for (auto [sample, share] : {std::pair{1, 0.125}, {2, 0.25}, {3, 0.625}}) {
        double n = 4.0 * kEpochs;
        EXPECT_NEAR(count[sample], n * share, 5 * std::sqrt(n * share * (1 - share)));
    }
}

TEST(SampleOrderTest, WeightsThatCannotBeAreRefused) {
    for (std::vector<double> weights :
         {std::vector<double>{1, 2}, {0, 0, 0}, {1, -1, 1}, {1, INFINITY, 1}}) {
        EXPECT_THROW(SampleOrder({.size = 3, .batch_size = 1, .weights = weights}), UserError);
    }
}

TEST(SampleOrderTest, RanksGetEqualNumbersAndNoSampleTwice) {
    std::multiset<std::int64_t> seen;
    for (int rank = 0; rank < 4; ++rank) {
        SampleOrder samples({.size = 103, .batch_size = 5, .shard = {rank, 4}});
        EXPECT_EQ(samples.batches_per_epoch(), 5);
        RunOrder order = samples.order(0);
        for (std::int64_t place = 0; place < 25; ++place) seen.insert(samples.at(order, 0, place));
    }
    EXPECT_EQ(seen.size(), 100u);
    EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), 100u);
}

}  // namespace
}  // namespace saturate
