// SPDX-License-Identifier: Apache-2.0
// What a reader has to know of a run besides its figures: when, with which command, where.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/run_report.h"

namespace saturate {

// "2026-11-18 20:15:00" of this machine's clock; "-": not known.
[[nodiscard]] std::string local_time_text(std::int64_t wall_ns);

// Begin, command, device, machine and version, as far as the records tell.
[[nodiscard]] std::vector<ReportRow> about_rows(const ReportInput& input);

}  // namespace saturate
