// SPDX-License-Identifier: Apache-2.0
// Head and summary of the record, shared by `monitor` and `run`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/gpus.h"
#include "telemetry/record.h"
#include "telemetry/summary.h"

namespace saturate {

[[nodiscard]] RunInfo run_info(const std::string& kind, const std::vector<std::string>& command,
                               const Devices& devices, std::int64_t start_ns);
[[nodiscard]] RunSummary run_summary(const Summary& summary, const std::string& ended,
                                     std::optional<int> status);

}  // namespace saturate
