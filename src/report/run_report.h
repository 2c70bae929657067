// SPDX-License-Identifier: Apache-2.0
// Runs side by side: one self-contained page, Markdown, or JSON. The first run is "before", the
// last "after".
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
    std::optional<Json> proof;  // proof.json of a search, where there is one
    Language language = Language::english;
};

[[nodiscard]] Json report_json(const ReportInput& input);
[[nodiscard]] std::string report_markdown(const ReportInput& input);

// What `serve` adds to a page, so that it follows a run that goes on.
struct LivePage {
    std::string version;              // of what it shows
    std::string events;               // "events?id=a": where changes are told
    std::string query;                // "?id=a": names the runs to the links for files
    std::vector<std::string> states;  // of the runs, "running" or how they ended
};
[[nodiscard]] std::string report_html(const ReportInput& input, const LivePage* live = nullptr);

// Before and after the content of a page: <html> to <main>, </main> to </html>.
[[nodiscard]] std::string page_start(Language language, std::string_view title,
                                     const LivePage* live);
[[nodiscard]] std::string page_end(const LivePage* live);

// One row of the comparison: what, and a cell per run.
struct ReportRow {
    std::string key;   // "samples_per_second"
    std::string name;  // for people
    std::vector<std::string> cells;
    std::string change;  // "+62 %"; empty: one run, or unknown
};
[[nodiscard]] std::vector<ReportRow> report_rows(const ReportInput& input);

// The settings in which the runs differ: key, then a value per run ("-" where it is absent).
[[nodiscard]] std::vector<ReportRow> differing_settings(const ReportInput& input);

[[nodiscard]] std::string report_verdict(const ReportInput& input);

// The last run against the first, for a check in CI.
struct Regression {
    double slower_percent = 0;  // negative: faster
    double limit_percent = 0;
    // As slow as the limit or slower, and beyond what the rates of each run vary by.
    bool fails = false;
    std::string text;  // one line
};
// Throws UserError with fewer than two runs, or when a rate is not known.
[[nodiscard]] Regression regression(const ReportInput& input, double limit_percent);
[[nodiscard]] Json to_json(const Regression& regression);

// proof.json of the search that these runs are trials of: in one of them, or in the folder around
// all of them. Nothing where there is none.
[[nodiscard]] std::optional<Json> proof_of(const std::vector<std::string>& folders);

}  // namespace saturate
