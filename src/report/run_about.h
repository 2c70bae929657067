// SPDX-License-Identifier: Apache-2.0
// Facts about a run besides its figures: when it ran, with which command, on which machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/run_report.h"

namespace saturate {

// Returns "2026-11-18 20:15:00" in local time, or "-" if not known.
[[nodiscard]] std::string local_time_text(std::int64_t wall_ns);

// Returns start time, command, device, machine and version, as far as the records have them.
[[nodiscard]] std::vector<ReportRow> about_rows(const ReportInput& input);

}  // namespace saturate
