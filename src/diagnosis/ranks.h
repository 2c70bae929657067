// SPDX-License-Identifier: Apache-2.0
// Several ranks of one job: who is late. The k-th collective of each rank is the same one; it ends
// for all together, so the rank that is in it for the shortest time came last.
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
    double communication_percent = 0;  // exposed
    std::int64_t wait_ns = 0;          // in collectives, for later ranks
    std::size_t latest = 0;            // collectives that waited for this rank
};

struct RankComparison {
    std::vector<RankFacts> ranks;
    std::size_t collectives = 0;        // paired
    std::int64_t transfer_ns = 0;       // of one rank: the sum of the shortest
    std::int64_t wait_ns = 0;           // mean per rank
    std::vector<int> late;              // ranks that the others wait for most, the worst first
    std::vector<std::string> warnings;  // ranks of different runs, missing ranks
    // The collectives were not seen: the ranks step together, and who waits for data longest is
    // the one that the others wait for. Then `collectives` are steps.
    bool by_input = false;

    // Mean per rank that is not late: what the others wait.
    [[nodiscard]] std::int64_t others_wait_ns() const;
};

[[nodiscard]] RankComparison compare_ranks(const std::vector<Timeline>& timelines);
// The same from run records, the first rank's first, each with its folder: the collective of a step
// is what the rank waited for after its backward pass. rank_records.cpp.
[[nodiscard]] RankComparison compare_ranks(
    const std::vector<std::pair<std::string, RunRecord>>& records);

// Fills the counts of `out` from the time that rank r spent in the k-th collective.
void compare_durations(const std::vector<std::vector<std::int64_t>>& durations,
                       RankComparison& out);

}  // namespace saturate
