// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "diagnosis/kernels.h"

namespace saturate {
namespace {

struct Collective {
    std::uint32_t event = 0;
    std::string_view name;
    std::int64_t duration_ns = 0;
    bool is_steady = false;  // in the steady part
};

// Returns all collectives of the trace, in order of time.
std::vector<Collective> collectives_of(const Timeline& line) {
    std::vector<Collective> out;
    const Trace& trace = *line.trace;
    KernelClasses classes(trace);
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const Event& event = trace.events[i];
        if (event.category != Category::kernel || trace.lane(event).device != line.device ||
            classes.of(event) != KernelClass::communication)
            continue;
        out.push_back({static_cast<std::uint32_t>(i), trace.name(event), event.duration_ns,
                       std::ranges::binary_search(line.gpu, static_cast<std::uint32_t>(i))});
    }
    return out;
}

// Returns the collectives to compare, per rank. Ranks start up differently, so their steady parts
// begin at different collectives. The k-th collective is therefore counted from the start of the
// trace and used if it is steady on every rank. If the traces hold different numbers of
// collectives, counting starts with the steady part of each rank instead.
std::vector<std::vector<Collective>> steady_collectives(
    const std::vector<std::vector<Collective>>& all) {
    bool is_same = std::ranges::all_of(
        all, [&](const auto& list) { return list.size() == all.front().size(); });
    std::vector<std::vector<Collective>> out(all.size());
    for (std::size_t r = 0; r < all.size(); ++r) {
        for (std::size_t k = 0; k < all[r].size(); ++k) {
            bool is_steady =
                is_same ? std::ranges::all_of(all, [&](const auto& l) { return l[k].is_steady; })
                        : all[r][k].is_steady;
            if (is_steady) out[r].push_back(all[r][k]);
        }
    }
    return out;
}

// Recording starts at slightly different moments, but ends after the same collective. If the
// numbers differ, drops what is too many at the start, unless the names fit better from there.
void align_ends(std::vector<std::vector<Collective>>& all, std::vector<std::string>& warnings) {
    std::size_t least = all.empty() ? 0 : all[0].size(), most = least;
    for (const auto& list : all) {
        least = std::min(least, list.size());
        most = std::max(most, list.size());
    }
    if (least == most || least * 2 < most) return;
    auto fitting = [&](bool from_end) {
        std::size_t count = 0;
        for (std::size_t k = 0; k < least; ++k) {
            auto one = [&](const auto& list) {
                return list[from_end ? list.size() - least + k : k].name;
            };
            count += std::ranges::all_of(
                all, [&](const auto& list) { return one(list) == one(all.front()); });
        }
        return count;
    };
    if (fitting(true) < fitting(false)) return;
    for (auto& list : all)
        list.erase(list.begin(), list.end() - static_cast<std::ptrdiff_t>(least));
    warnings.push_back(fmt::format(
        "the ranks have {} to {} collectives: those before the last {} are not compared", least,
        most, least));
}

}  // namespace

std::int64_t RankComparison::others_wait_ns() const {
    std::int64_t sum = 0, count = 0;
    for (const RankFacts& facts : ranks) {
        if (std::ranges::find(late, facts.rank) != late.end()) continue;
        sum += facts.wait_ns;
        ++count;
    }
    return count > 0 ? sum / count : 0;
}

RankComparison compare_ranks(std::vector<Timeline>& timelines) {
    RankComparison out;
    std::vector<std::vector<Collective>> all;
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
    std::vector<std::vector<Collective>> steady = steady_collectives(all);
    align_ends(steady, out.warnings);
    std::vector<std::vector<std::int64_t>> durations(steady.size());
    for (std::size_t r = 0; r < steady.size(); ++r) {
        for (const Collective& one : steady[r]) durations[r].push_back(one.duration_ns);
    }
    compare_durations(durations, out);
    // How long all the others waited for each rank.
    for (std::size_t k = 0; k < out.collectives; ++k) {
        for (std::size_t r = 0; r < steady.size(); ++r) {
            std::int64_t patience = std::numeric_limits<std::int64_t>::max();
            for (std::size_t other = 0; other < steady.size(); ++other) {
                if (other != r) patience = std::min(patience, durations[other][k]);
            }
            if (patience > durations[r][k])
                timelines[r].awaited.emplace_back(steady[r][k].event, patience - durations[r][k]);
        }
    }
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
    std::vector<std::int64_t> caused(all.size());  // how long the others waited for this rank
    for (std::size_t k = 0; k < least; ++k) {
        std::size_t latest = 0;
        for (std::size_t r = 1; r < all.size(); ++r) {
            if (all[r][k] < all[latest][k]) latest = r;
        }
        std::int64_t transfer = all[latest][k];
        out.transfer_ns += transfer;
        ++out.ranks[latest].latest;
        for (std::size_t r = 0; r < all.size(); ++r) {
            out.ranks[r].wait_ns += all[r][k] - transfer;
            caused[latest] += all[r][k] - transfer;
        }
    }
    std::int64_t sum = 0;
    for (const RankFacts& facts : out.ranks) sum += facts.wait_ns;
    if (!out.ranks.empty()) out.wait_ns = sum / static_cast<std::int64_t>(out.ranks.size());
    // A rank is late if it comes last far more often than by chance and the others wait for it.
    // With fewer than kHabit collectives that says nothing: some rank always comes last.
    constexpr std::size_t kHabit = 3;
    constexpr std::int64_t kPart = 10;  // of all the waiting, the least for a late rank
    if (least < kHabit) return;
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t r) { return caused[r]; });
    for (std::size_t r : order) {
        if (out.ranks[r].latest * out.ranks.size() > 3 * least / 2 && kPart * caused[r] >= sum)
            out.late.push_back(out.ranks[r].rank);
    }
}

}  // namespace saturate
