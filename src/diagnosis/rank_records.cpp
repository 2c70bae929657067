// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "diagnosis/ranks.h"

namespace saturate {

RankComparison compare_ranks(const std::vector<std::pair<std::string, RunRecord>>& records) {
    RankComparison out;
    // By step: the records of several ranks may begin and end a little apart.
    std::map<std::int64_t, std::vector<std::int64_t>> by_step;
    for (const auto& [folder, record] : records) {
        RankFacts facts{.rank = record.info.rank, .file = folder};
        double total = 0, exposed = 0;
        std::int64_t warm_up = account_of(record).warm_up;
        for (const StepRecord& step : record.steps) {
            bool is_warm = step.step - record.steps.front().step >= warm_up;
            if (!step.communication_ns || !is_warm) continue;
            by_step[step.step].push_back(*step.communication_ns);
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
        if (each.size() != records.size()) continue;  // not all came so far
        for (std::size_t rank = 0; rank < each.size(); ++rank)
            durations[rank].push_back(each[rank]);
    }
    int world = records.empty() ? 0 : records[0].second.info.world_size;
    if (static_cast<int>(records.size()) < world)
        out.warnings.push_back(fmt::format("{} of {} ranks are here", records.size(), world));
    compare_durations(durations, out);
    return out;
}

}  // namespace saturate
