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

// H1-H6: how far the input itself can be believed.
struct HealthNote {
    std::string id;
    std::string text;
    std::string advice;  // how to record a better one; may be empty
};

struct SplitPercent {
    double compute = 0, communication = 0, memcpy = 0, memset = 0, idle = 0, unknown = 0;
};

// A gain below this is not worth a line.
inline constexpr double kShownFrom = 1.03;

// The recorded time, and the steady part of it that is diagnosed.
struct RecordedTime {
    double whole_ms = 0;
    double steady_ms = 0;
    std::optional<double> whole_busy_percent;
    double startup_percent = 0;                            // of the whole, left out or not
    double recording_percent = 0;                          // of the whole: CUDA graphs
    std::vector<std::pair<std::string, double>> left_out;  // kind, ms
    bool is_remnant = false;                               // too little is left to be judged
};

struct Diagnosis {
    std::vector<std::string> inputs;
    std::string verdict;
    std::string device;                  // "Tesla V100-DGXS-32GB"; empty: unknown
    double window_ms = 0;                // the steady part
    std::optional<RecordedTime> window;  // of a trace
    bool truncated = false;              // the file ends in the middle
    std::optional<double> step_ms;       // median
    std::int64_t steps = 0;
    std::optional<double> busy_percent;  // absent: no GPU was seen
    SplitPercent split;
    std::vector<std::pair<Cause, double>> idle;  // share of the window by cause, the largest first
    std::vector<Finding> findings;               // all, ranked
    Gain total;                                  // with the fixes of all that are shown
    std::optional<double> replay_error_percent;
    std::vector<HealthNote> health;
    std::size_t unseen_launches = 0;  // calls that launch, in a trace without any GPU work
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

// verdict.cpp: one sentence, from all that is known by then.
[[nodiscard]] std::string verdict_of(const Diagnosis& diagnosis);
// The part of it that names the largest cause and the best fix.
[[nodiscard]] std::string cause_and_fix(const Diagnosis& diagnosis, std::string_view whole);

// docs/json.md, section diagnose.
[[nodiscard]] Json to_json(const Diagnosis& diagnosis, std::size_t most, bool everything);

// trace_health.cpp
[[nodiscard]] std::vector<HealthNote> trace_health(const Timeline& timeline);
// Kernels that start before they are launched, if they are many or far off; else 0.
[[nodiscard]] std::size_t starts_before_launch(const Timeline& timeline);
// Calls that launch work on a GPU, where none of it was recorded.
[[nodiscard]] std::size_t unseen_launches(const Timeline& timeline);
// findings_run.cpp, findings_python.cpp, findings_config.cpp
[[nodiscard]] std::vector<Finding> run_findings(const RunRecord& record);
// What the shim told explains findings that are there and adds its own.
void python_findings(const RunRecord& record, std::vector<Finding>& findings);
// findings_trend.cpp: memory that grows, steps that get slower.
void trend_findings(const RunRecord& record, std::vector<Finding>& findings);
// findings_force.cpp: what the configuration says and the run did not do.
void settings_in_force(const RunRecord& record, const Document& document,
                       std::vector<Finding>& findings);
// What the run did already is not advised again, nor more workers beside too many.
void drop_what_is_in_force(const RunRecord& record, std::vector<Finding>& findings);
[[nodiscard]] std::vector<Finding> config_findings(const Document& document, Facts facts);

}  // namespace saturate
