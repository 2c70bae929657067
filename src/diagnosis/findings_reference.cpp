// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "diagnosis/finding.h"

namespace saturate {

namespace {

// Escapes bars, which would end the table cell.
std::string cell(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '|') out += '\\';
        out += c;
    }
    return out;
}

}  // namespace

std::string findings_reference() {
    std::string out =
        "# Findings\n\n"
        "Made from the table of findings (`src/diagnosis/finding.cpp`). `saturate diagnose` names "
        "those that a trace, a run record (run) or a\n"
        "configuration shows, with their share, their fix and what it would gain "
        "([diagnose.md](diagnose.md)). What gains under 3 % is shown with `--all`.\n\n"
        "| id | name | seen in | what is seen | usual fix |\n|---|---|---|---|---|\n";
    for (const FindingRow& row : finding_table()) {
        out += fmt::format("| {} | {} | {} | {} | {} |\n", row.id, cell(row.name), cell(row.source),
                           cell(row.seen), cell(row.fix));
    }
    return out;
}

}  // namespace saturate
