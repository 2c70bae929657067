// SPDX-License-Identifier: Apache-2.0
// Compares runs in a self-contained page, Markdown or JSON. The first run is "before", the last one
// "after".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "report/run_view.h"
#include "tuning/proof.h"
#include "words/words.h"

namespace saturate {

struct ReportInput {
    std::vector<RunView> runs;
    std::optional<Json> proof;  // proof.json of a search, if there is one
    Language language = Language::english;
};

[[nodiscard]] Json report_json(const ReportInput& input);
[[nodiscard]] std::string report_markdown(const ReportInput& input);

// The parts that `serve` adds to a page, so that it follows a running job.
struct LivePage {
    std::string version;              // of the content
    std::string events;               // "events?id=a": the stream of changes
    std::string query;                // "?id=a": the query of the links to files
    std::vector<std::string> states;  // per run: "running" or how it ended
};
[[nodiscard]] std::string report_html(const ReportInput& input, const LivePage* live = nullptr);

// The parts around the content of a page: <html> to <main>, and </main> to </html>.
[[nodiscard]] std::string page_start(Language language, std::string_view title,
                                     const LivePage* live);
[[nodiscard]] std::string page_end(const LivePage* live);

// One row of the comparison, with a cell per run.
struct ReportRow {
    std::string key;   // "samples_per_second"
    std::string name;  // as shown
    std::vector<std::string> cells;
    std::string change;  // "+62 %"; empty if there is only one run or it is unknown
};
[[nodiscard]] std::vector<ReportRow> report_rows(const ReportInput& input);

// Returns the settings that differ between the runs, with a value per run ("-" if absent).
[[nodiscard]] std::vector<ReportRow> differing_settings(const ReportInput& input);

[[nodiscard]] std::string report_verdict(const ReportInput& input);

// The last run compared with the first one, for a check in CI.
struct Regression {
    double slower_percent = 0;  // negative: faster
    double limit_percent = 0;
    // True if the run is slower by the limit or more and the ranges of both rates do not overlap.
    bool fails = false;
    std::string text;  // one line
};
// Throws UserError if there are fewer than two runs or a rate is not known.
[[nodiscard]] Regression regression(const ReportInput& input, double limit_percent);
[[nodiscard]] Json to_json(const Regression& regression);

// Reads proof.json of the search to which these runs belong, from one of their folders or the
// folder around them. Returns nullopt if there is none.
[[nodiscard]] std::optional<Json> proof_of(const std::vector<std::string>& folders);

}  // namespace saturate
