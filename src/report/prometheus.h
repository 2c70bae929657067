// SPDX-License-Identifier: Apache-2.0
// A snapshot as Prometheus text (exposition format 0.0.4). Base units, ratios from 0 to 1, one
// metric family each with HELP and TYPE. What is unknown has no line: a gap in a graph, never a 0.
#pragma once

#include <string>
#include <vector>

#include "telemetry/sample.h"

namespace saturate {

[[nodiscard]] std::string prometheus_text(const Snapshot& snapshot);

// The names of all metrics that can appear, for the dashboard's test and the docs.
[[nodiscard]] std::vector<std::string> prometheus_names();

// The content type to serve it with.
inline constexpr const char* kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace saturate
