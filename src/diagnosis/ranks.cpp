// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "diagnosis/kernels.h"

namespace saturate {
namespace {

std::vector<std::int64_t> collectives_of(const Timeline& line) {
    std::vector<std::int64_t> out;
    const Trace& trace = *line.trace;
    KernelClasses classes(trace);
    for (std::uint32_t index : line.gpu) {
        const Event& event = trace.events[index];
        if (event.category == Category::kernel && classes.of(event) == KernelClass::communication)
            out.push_back(event.duration_ns);
    }
    return out;
}

}  // namespace

RankComparison compare_ranks(const std::vector<Timeline>& timelines) {
    RankComparison out;
    std::vector<std::vector<std::int64_t>> all;
    std::set<int> seen;
    std::set<int> worlds;
    for (std::size_t i = 0; i < timelines.size(); ++i) {
        const Timeline& line = timelines[i];
        RankFacts facts;
        facts.rank = line.trace->rank.value_or(static_cast<int>(i));
        facts.file = line.trace->file;
        facts.busy_percent = line.busy_percent();
        facts.communication_percent = line.percent(line.split.communication_ns);
        if (!seen.insert(facts.rank).second)
            out.warnings.push_back(fmt::format(
                "rank {} appears twice: the files seem to come from different runs", facts.rank));
        if (line.trace->world_size) worlds.insert(*line.trace->world_size);
        out.ranks.push_back(facts);
        all.push_back(collectives_of(line));
    }
    if (worlds.size() > 1)
        out.warnings.push_back(
            "the files name different numbers of ranks: they come from different runs");
    if (worlds.size() == 1 && static_cast<int>(timelines.size()) < *worlds.begin())
        out.warnings.push_back(
            fmt::format("{} of {} ranks are here", timelines.size(), *worlds.begin()));
    compare_durations(all, out);
    return out;
}

void compare_durations(const std::vector<std::vector<std::int64_t>>& all, RankComparison& out) {
    std::size_t least = all.empty() ? 0 : all[0].size(), most = least;
    for (const auto& list : all) {
        least = std::min(least, list.size());
        most = std::max(most, list.size());
    }
    if (most != least) {
        out.warnings.push_back(fmt::format(
            "the ranks have {} to {} collectives: those beyond the first {} are not compared",
            least, most, least));
        if (least * 2 < most) return;
    }
    out.collectives = least;
    for (std::size_t k = 0; k < least; ++k) {
        std::size_t latest = 0;
        for (std::size_t r = 1; r < all.size(); ++r) {
            if (all[r][k] < all[latest][k]) latest = r;
        }
        std::int64_t transfer = all[latest][k];
        out.transfer_ns += transfer;
        ++out.ranks[latest].latest;
        for (std::size_t r = 0; r < all.size(); ++r) out.ranks[r].wait_ns += all[r][k] - transfer;
    }
    std::int64_t sum = 0;
    for (const RankFacts& facts : out.ranks) sum += facts.wait_ns;
    if (!out.ranks.empty()) out.wait_ns = sum / static_cast<std::int64_t>(out.ranks.size());
    // Late is who is last far more often than chance would have it.
    std::vector<RankFacts> by_latest = out.ranks;
    std::ranges::stable_sort(by_latest, std::greater<>(), &RankFacts::latest);
    for (const RankFacts& facts : by_latest) {
        if (facts.latest * out.ranks.size() > 3 * least / 2) out.late.push_back(facts.rank);
    }
}

}  // namespace saturate
