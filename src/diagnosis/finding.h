// SPDX-License-Identifier: Apache-2.0
// What diagnose answers with: a cause, its evidence, the fix and what the fix would gain. The one
// table of findings (id, name, fix) is in finding.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saturate {

// A factor of the step's speed: 1.0 is no gain.
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
    std::string source;  // "train.py(62): <module>"; empty: not recorded
};

// A setting that the fix changes, by its canonical name, so that a configuration can be edited.
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
    std::string fix;       // overrides the table's
    std::vector<SettingChange> settings;
    std::string where;  // the user's own line, "train.py:41 (main)"; empty: not known
    std::string patch;  // the fix as a unified diff, where it is mechanical; else empty
    Gain gain;
    std::vector<Example> examples;  // three at most
    std::string surer;              // what to record to be more certain; may be empty
    std::string assumes;    // what the gain takes for granted, with its source; may be empty
    std::string part_of;    // the finding whose time this one explains further
    bool optional = false;  // not a drop-in change: shown with --all only
    std::vector<std::string> sources = {"trace"};  // trace, run record, configuration

    [[nodiscard]] std::string_view name() const;
    [[nodiscard]] std::string fix_text() const;
};

struct FindingRow {
    std::string_view id;
    std::string_view name;
    std::string_view fix;
    std::string_view source;  // what it can be seen in: trace, run, configuration
    std::string_view seen;    // what is seen there
};
[[nodiscard]] std::span<const FindingRow> finding_table();

// docs/findings.md, made from the table; a test compares the two.
[[nodiscard]] std::string findings_reference();

// The same finding from several sources becomes one; ranked by likely gain, then share; parts
// follow what they are part of.
[[nodiscard]] std::vector<Finding> merged(std::vector<Finding> findings);

}  // namespace saturate
