// SPDX-License-Identifier: Apache-2.0
// A finding: one cause of lost time with its evidence, its fix and the gain of the fix. The table
// of all findings (id, name, fix) is in finding.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saturate {

// The factor by which steps get faster: 1.0 is no gain.
struct Gain {
    double low = 1.0;
    double likely = 1.0;
    double high = 1.0;
};

enum class Confidence { low, medium, high };
[[nodiscard]] std::string_view confidence_text(Confidence confidence);

struct Example {
    std::int64_t time_ns = 0;  // from the start of the trace
    std::string text;
    std::string source;  // "train.py(62): <module>"; empty if not recorded
};

// A setting that the fix changes. `key` is its canonical name, so that a configuration can be
// edited.
struct SettingChange {
    std::string key;
    std::string value;
};

struct Finding {
    std::string id;            // "F01"
    double share_percent = 0;  // of the window
    double ms_per_step = 0;
    std::int64_t count = 0;
    Confidence confidence = Confidence::medium;
    std::string evidence;  // one sentence with numbers
    std::string fix;       // overrides the fix in the table
    std::vector<SettingChange> settings;
    std::string where;  // line in the user's code, "train.py:41 (main)"; empty if unknown
    std::string patch;  // the fix as a unified diff; empty if it cannot be made mechanically
    Gain gain;
    std::vector<Example> examples;  // at most three
    std::string surer;              // what to record for more certainty; may be empty
    std::string assumes;            // what the estimated gain assumes, with source; may be empty
    std::string part_of;            // id of the finding whose time this one explains in more detail
    bool optional = false;          // not a drop-in change: shown with --all only
    std::vector<std::string> sources = {"trace"};  // trace, run record, configuration

    [[nodiscard]] std::string_view name() const;
    [[nodiscard]] std::string fix_text() const;
};

struct FindingRow {
    std::string_view id;
    std::string_view name;
    std::string_view fix;
    std::string_view source;  // the inputs that show it: trace, run, configuration
    std::string_view seen;    // the symptom that shows it
};
[[nodiscard]] std::span<const FindingRow> finding_table();

// Returns the text of docs/findings.md, made from the table; a test compares the two.
[[nodiscard]] std::string findings_reference();

// Merges the same finding from several sources into one and ranks by likely gain, then by share.
// The parts of a finding follow it.
[[nodiscard]] std::vector<Finding> merged(std::vector<Finding> findings);

}  // namespace saturate
