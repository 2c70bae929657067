// SPDX-License-Identifier: Apache-2.0
// Writes a snapshot as Prometheus text (exposition format 0.0.4), with base units, ratios from 0 to
// 1, and HELP and TYPE for each metric family. An unknown value has no line, so that graphs show a
// gap and not 0.
#pragma once

#include <string>
#include <vector>

#include "telemetry/sample.h"

namespace saturate {

[[nodiscard]] std::string prometheus_text(const Snapshot& snapshot);

// Returns the names of all metrics that can appear, for the test of the dashboard and the docs.
[[nodiscard]] std::vector<std::string> prometheus_names();

// The content type of this text over HTTP.
inline constexpr const char* kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace saturate
