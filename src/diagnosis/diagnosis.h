// SPDX-License-Identifier: Apache-2.0
// The full result of `diagnose`: a verdict, where the time went, the findings, and the gain of all
// fixes together. Made from traces (one per rank), a run record or a configuration. Printed by
// app/cmd_diagnose; read by tuning and report.
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

// H1-H6: notes on how far the input itself can be trusted.
struct HealthNote {
    std::string id;
    std::string text;
    std::string advice;  // how to record a better one; may be empty
};

struct SplitPercent {
    double compute = 0, communication = 0, memcpy = 0, memset = 0, idle = 0, unknown = 0;
};

// Smaller gains are not shown.
inline constexpr double kShownFrom = 1.03;

// The recorded time and its steady part, which is the part that is diagnosed.
struct RecordedTime {
    double whole_ms = 0;
    double steady_ms = 0;
    std::optional<double> whole_busy_percent;
    double startup_percent = 0;                            // of the whole, whether left out or not
    double recording_percent = 0;                          // of the whole: CUDA graphs
    std::vector<std::pair<std::string, double>> left_out;  // kind, ms
    bool is_remnant = false;                               // too little is left to judge
};

struct Diagnosis {
    std::vector<std::string> inputs;
    std::string verdict;
    std::string device;                  // "Tesla V100-DGXS-32GB"; empty: unknown
    double window_ms = 0;                // length of the steady part
    std::optional<RecordedTime> window;  // only of a trace
    bool truncated = false;              // the file is cut off
    std::optional<double> step_ms;       // median
    std::int64_t steps = 0;
    std::optional<double> busy_percent;  // absent: no GPU was seen
    SplitPercent split;
    std::vector<std::pair<Cause, double>> idle;  // share of the window by cause, the largest first
    std::vector<Finding> findings;               // all, ranked
    Gain total;                                  // with the fixes of all shown findings
    std::optional<double> replay_error_percent;
    std::vector<HealthNote> health;
    std::size_t unseen_launches = 0;  // calls that launch, in a trace without any GPU work
    std::string gpu_operator;  // in such a trace: an operator that only jobs on a GPU run, or empty
    std::string other_device;  // in such a trace: an accelerator whose work is not read, or empty
    std::uint64_t dropped_events = 0;
    std::uint64_t repaired_events = 0;
    std::optional<RankComparison> ranks;
    std::size_t rank_shown = 0;  // which of several traces the times and findings belong to

    // Returns what a bar calls this part of the time; without a GPU, operators are the work itself.
    [[nodiscard]] std::string_view part_text(Cause cause) const;
    // Returns the findings worth showing: a gain of 3 % or more and not optional, at most `most`.
    // With `everything`, returns all of them.
    [[nodiscard]] std::vector<Finding> shown(std::size_t most, bool everything) const;
};

[[nodiscard]] Diagnosis diagnose_trace(const Trace& trace);
[[nodiscard]] Diagnosis diagnose_traces(const std::vector<Trace>& traces);
[[nodiscard]] Diagnosis diagnose_run(const RunRecord& record, const std::string& folder);
// Diagnoses a record's folder with its trace and the records of further ranks (rank1/ ...). If the
// trace shows no GPU, the answer comes from the record alone.
[[nodiscard]] Diagnosis diagnose_run_folder(const std::filesystem::path& folder);
// The same for a record that was already read from `folder`.
[[nodiscard]] Diagnosis diagnose_run_folder(const std::filesystem::path& folder, RunRecord record);
[[nodiscard]] Diagnosis diagnose_config(const Document& document, const Facts& facts);
// Joins two diagnoses of the same job: merges the findings and takes the times from the trace.
[[nodiscard]] Diagnosis joined(Diagnosis trace, Diagnosis other);

// F17: the time that the other ranks wait for the late one. The fixes found for the late rank
// limit the gain.
[[nodiscard]] Finding straggler(const RankComparison& ranks, const Diagnosis& late,
                                double window_ms);

// verdict.cpp. Returns one sentence that sums up the finished diagnosis.
[[nodiscard]] std::string verdict_of(const Diagnosis& diagnosis);
// Returns the part of the verdict that names the largest cause and the best fix.
[[nodiscard]] std::string cause_and_fix(const Diagnosis& diagnosis, std::string_view whole);

// The format is in docs/json.md, section diagnose.
[[nodiscard]] Json to_json(const Diagnosis& diagnosis, std::size_t most, bool everything);

// trace_health.cpp
[[nodiscard]] std::vector<HealthNote> trace_health(const Timeline& timeline);
// Returns the number of kernels that start before their launch if they are many or far off, or 0.
[[nodiscard]] std::size_t starts_before_launch(const Timeline& timeline);
// Returns the number of calls that launch GPU work in a trace that holds no GPU work, or 0.
[[nodiscard]] std::size_t unseen_launches(const Timeline& timeline);
// Returns the name of an operator that only jobs on a GPU run, in a trace without GPU work, or "".
[[nodiscard]] std::string gpu_operator(const Timeline& timeline);
// findings_run.cpp, findings_python.cpp, findings_config.cpp
[[nodiscard]] std::vector<Finding> run_findings(const RunRecord& record);
// Explains existing findings with the data of the Python shim and adds further ones.
void python_findings(const RunRecord& record, std::vector<Finding>& findings);
// findings_trend.cpp: memory that grows, steps that get slower.
void trend_findings(const RunRecord& record, std::vector<Finding>& findings);
// findings_force.cpp: settings that are in the configuration but were not in force in the run.
void settings_in_force(const RunRecord& record, const Document& document,
                       std::vector<Finding>& findings);
// Removes advice for settings that the run already used, and advice for more workers if there are
// too many already.
void drop_what_is_in_force(const RunRecord& record, std::vector<Finding>& findings);
[[nodiscard]] std::vector<Finding> config_findings(const Document& document, Facts facts);

}  // namespace saturate
