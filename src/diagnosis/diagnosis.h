// SPDX-License-Identifier: Apache-2.0
// The whole answer: one verdict, where the time went, the findings and what they would gain
// together. Made from traces (one per rank), a run record or a configuration; printed by
// app/cmd_diagnose and read by tuning and report.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "config/document.h"
#include "diagnosis/finding.h"
#include "diagnosis/ranks.h"
#include "diagnosis/timeline.h"
#include "remedies/facts.h"
#include "telemetry/record_reader.h"

namespace saturate {

// H1-H3: how far the input itself can be believed.
struct HealthNote {
    std::string id;
    std::string text;
    std::string advice;  // how to record a better one; may be empty
};

struct SplitPercent {
    double compute = 0, communication = 0, memcpy = 0, memset = 0, idle = 0, unknown = 0;
};

struct Diagnosis {
    std::vector<std::string> inputs;
    std::string verdict;
    std::string device;  // "Tesla V100-DGXS-32GB"; empty: unknown
    double window_ms = 0;
    std::optional<double> step_ms;  // median
    std::int64_t steps = 0;
    std::optional<double> busy_percent;  // absent: no GPU was seen
    SplitPercent split;
    std::vector<std::pair<Cause, double>> idle;  // share of the window by cause, the largest first
    std::vector<Finding> findings;               // all, ranked
    Gain total;                                  // with the fixes of all that are shown
    std::optional<double> replay_error_percent;
    std::vector<HealthNote> health;
    std::uint64_t dropped_events = 0;
    std::uint64_t repaired_events = 0;
    std::optional<RankComparison> ranks;

    // Those worth showing: a gain of 3 % or more, no options. With `everything`, all of them.
    [[nodiscard]] std::vector<Finding> shown(std::size_t most, bool everything) const;
};

[[nodiscard]] Diagnosis diagnose_trace(const Trace& trace);
[[nodiscard]] Diagnosis diagnose_traces(const std::vector<Trace>& traces);
[[nodiscard]] Diagnosis diagnose_run(const RunRecord& record, const std::string& folder);
// A record's folder with the trace in it, and with the records of further ranks (rank1/ ...). A
// trace that shows no device leaves the word to the record.
[[nodiscard]] Diagnosis diagnose_run_folder(const std::filesystem::path& folder);
// The same of its own record, which was read already.
[[nodiscard]] Diagnosis diagnose_run_folder(const std::filesystem::path& folder, RunRecord record);
[[nodiscard]] Diagnosis diagnose_config(const Document& document, const Facts& facts);
// One answer of several about the same job: findings are merged, the time is the trace's.
[[nodiscard]] Diagnosis joined(Diagnosis trace, Diagnosis other);

// F17: what the others wait for the late rank, whose own diagnosis bounds the gain.
[[nodiscard]] Finding straggler(const RankComparison& ranks, const Diagnosis& late,
                                double window_ms);

// docs/json.md, section diagnose.
[[nodiscard]] Json to_json(const Diagnosis& diagnosis, std::size_t most, bool everything);

// trace_health.cpp
[[nodiscard]] std::vector<HealthNote> trace_health(const Timeline& timeline);
// findings_run.cpp, findings_python.cpp, findings_config.cpp
[[nodiscard]] std::vector<Finding> run_findings(const RunRecord& record);
// What the shim told explains findings that are there and adds its own.
void python_findings(const RunRecord& record, std::vector<Finding>& findings);
[[nodiscard]] std::vector<Finding> config_findings(const Document& document, Facts facts);

}  // namespace saturate
