// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/error.h"
#include "diagnosis/diagnosis.h"
#include "diagnosis/python_json.h"
#include "diagnosis/trace_read.h"
#include "telemetry/run_gather.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;
using RankRecords = std::vector<std::pair<std::string, RunRecord>>;

RankRecords read_ranks(const fs::path& folder) {
    RankRecords out;
    for (int rank = 1;; ++rank) {
        fs::path own = folder / fmt::format("rank{}", rank);
        if (!is_run_record(own)) return out;
        out.emplace_back(own.string(), gather_run(own));
    }
}

// Diagnoses the rank that the others wait for, or else the first one, on behalf of the job.
Diagnosis diagnose_ranks(const RankRecords& records) {
    RankComparison ranks = compare_ranks(records);
    std::size_t which = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
        if (!ranks.late.empty() && ranks.ranks[i].rank == ranks.late[0]) which = i;
    }
    Diagnosis out = diagnose_run(records[which].second, records[which].first);
    double wait_ms = static_cast<double>(ranks.wait_ns) / 1e6;
    if (!ranks.late.empty() && wait_ms >= 0.05 * out.window_ms) {
        Finding late = straggler(ranks, out, out.window_ms);
        late.confidence = Confidence::medium;
        late.sources = {"run record"};
        double others = static_cast<double>(ranks.others_wait_ns()) / 1e4 / out.window_ms;
        out.verdict = fmt::format("rank {} holds up the others: they wait {:.0f} % of the time; {}",
                                  ranks.late[0], others, out.verdict);
        out.findings.insert(out.findings.begin(), std::move(late));
    } else {
        ranks.late.clear();
    }
    out.inputs.clear();
    for (const auto& [path, record] : records) out.inputs.push_back(path);
    for (const std::string& warning : ranks.warnings) out.health.push_back({"ranks", warning, ""});
    out.ranks = std::move(ranks);
    return out;
}

Diagnosis diagnose_records(const fs::path& folder, RunRecord first) {
    RankRecords records = read_ranks(folder);
    if (records.empty()) return diagnose_run(first, folder.string());
    records.insert(records.begin(), {folder.string(), std::move(first)});
    return diagnose_ranks(records);
}

}  // namespace

Diagnosis diagnose_run_folder(const std::filesystem::path& folder) {
    return diagnose_run_folder(folder, gather_run(folder));
}

Diagnosis diagnose_run_folder(const std::filesystem::path& folder, RunRecord record) {
    bool may_stay = may_persist(record.python, training_loader(record.python));
    Diagnosis of_run = diagnose_records(folder, std::move(record));
    std::filesystem::path file = folder / "trace.json.gz";
    if (!std::filesystem::is_regular_file(file)) return of_run;
    try {
        Diagnosis of_trace = diagnose_traces(read_traces({file}, {}));
        if (!may_stay) advise_no_persistence(of_trace.findings);
        if (of_trace.busy_percent) {
            Diagnosis both = joined(std::move(of_trace), std::move(of_run));
            drop_what_is_in_force(gather_run(folder), both.findings);
            return both;
        }
    } catch (const UserError& error) {
        of_run.health.push_back({"trace", error.problems()[0].found, ""});
    }
    return of_run;
}

}  // namespace saturate
