// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "diagnosis/ranks.h"

namespace saturate {

namespace {

using Records = std::vector<std::pair<std::string, RunRecord>>;

// True if the steps of all ranks take equally long, as they do for ranks that exchange gradients.
bool step_together(const Records& records) {
    double shortest = 0, longest = 0;
    for (const auto& [folder, record] : records) {
        Account account = account_of(record);
        if (account.steady.steps < 10) return false;
        double each = account.steady.seconds / static_cast<double>(account.steady.steps);
        shortest = shortest == 0 ? each : std::min(shortest, each);
        longest = std::max(longest, each);
    }
    return longest > 0 && longest <= 1.1 * shortest;
}

// Returns the step time without the wait for data: work and waiting for the other ranks.
std::optional<std::int64_t> without_input(const StepRecord& step) {
    if (!step.input_wait_ns) return std::nullopt;
    return step.duration_ns - std::min(step.duration_ns, *step.input_wait_ns);
}

}  // namespace

RankComparison compare_ranks(const std::vector<std::pair<std::string, RunRecord>>& records) {
    RankComparison out;
    bool is_told = std::ranges::any_of(records, [](const auto& one) {
        return std::ranges::any_of(one.second.steps, [](const StepRecord& step) {
            return step.communication_ns.has_value();
        });
    });
    out.by_input = !is_told && records.size() > 1 && step_together(records);
    // Compare by step number: the records of the ranks may begin and end at different steps.
    std::map<std::int64_t, std::vector<std::int64_t>> by_step;
    for (const auto& [folder, record] : records) {
        RankFacts facts{.rank = record.info.rank, .file = folder};
        double total = 0, exposed = 0;
        std::int64_t warm_up = account_of(record).warm_up;
        for (const StepRecord& step : record.steps) {
            bool is_warm = step.step - record.steps.front().step >= warm_up;
            auto shared = out.by_input ? without_input(step) : step.communication_ns;
            if (!shared || !is_warm) continue;
            by_step[step.step].push_back(*shared);
            if (out.by_input) continue;
            total += static_cast<double>(step.duration_ns);
            exposed += static_cast<double>(*step.communication_ns);
        }
        if (total > 0) facts.communication_percent = 100.0 * exposed / total;
        if (record.summary && record.summary->busy_percent)
            facts.busy_percent = *record.summary->busy_percent;
        out.ranks.push_back(facts);
    }
    std::vector<std::vector<std::int64_t>> durations(records.size());
    for (const auto& [step, each] : by_step) {
        if (each.size() != records.size()) continue;  // not every rank has this step
        for (std::size_t rank = 0; rank < each.size(); ++rank)
            durations[rank].push_back(each[rank]);
    }
    int world = records.empty() ? 0 : records[0].second.info.world_size;
    if (static_cast<int>(records.size()) < world)
        out.warnings.push_back(fmt::format("{} of {} ranks are here", records.size(), world));
    compare_durations(durations, out);
    if (out.by_input) out.transfer_ns = 0;  // the shortest time is the late rank's own work
    return out;
}

}  // namespace saturate
