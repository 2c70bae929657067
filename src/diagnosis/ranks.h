// SPDX-License-Identifier: Apache-2.0
// Compares the ranks of one job to find the late ones. The k-th collective is the same one on every
// rank and ends for all ranks together, so the rank that spends the shortest time in it came last.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnosis/timeline.h"
#include "telemetry/record_reader.h"

namespace saturate {

struct RankFacts {
    int rank = 0;
    std::string file;
    double busy_percent = 0;
    double communication_percent = 0;  // only exposed
    std::int64_t wait_ns = 0;          // waiting in collectives for later ranks
    std::size_t latest = 0;            // collectives in which this rank came last
};

struct RankComparison {
    std::vector<RankFacts> ranks;
    std::size_t collectives = 0;        // compared on all ranks
    std::int64_t transfer_ns = 0;       // per rank: sum of the shortest times
    std::int64_t wait_ns = 0;           // mean of all ranks
    std::vector<int> late;              // ranks that the others wait for, worst first
    std::vector<std::string> warnings;  // files of different runs, missing ranks
    // True if no collectives were recorded. The ranks step together, so the others wait for the
    // rank that waits longest for data. `collectives` then counts steps.
    bool by_input = false;

    // Returns the mean wait of the ranks that are not late.
    [[nodiscard]] std::int64_t others_wait_ns() const;
};

// Also writes down in the timelines which collectives all the other ranks waited for.
[[nodiscard]] RankComparison compare_ranks(std::vector<Timeline>& timelines);
// The same from run records, each with its folder, the first rank's record first. The time in a
// collective is the step's wait for communication after the backward pass. In rank_records.cpp.
[[nodiscard]] RankComparison compare_ranks(
    const std::vector<std::pair<std::string, RunRecord>>& records);

// Fills the counts and times of `out`; durations[r][k] is the time of rank r in collective k.
void compare_durations(const std::vector<std::vector<std::int64_t>>& durations,
                       RankComparison& out);

}  // namespace saturate
