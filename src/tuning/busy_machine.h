// SPDX-License-Identifier: Apache-2.0
// Whether something else uses the machine on which a search is to measure. Pure.
#pragma once

#include <span>
#include <string>

#include "telemetry/sample.h"

namespace saturate {

// Of a sample that was taken while we did nothing: "other work uses 1.1 of 2 cores ..."; empty when
// a fifth of the cores or less is in use and no task waits for one.
[[nodiscard]] std::string busy_machine(const HostSample& resting);
// The same of the samples of a run that was watched: what the machine did besides it.
[[nodiscard]] std::string busy_beside(std::span<const HostSample> watched);

}  // namespace saturate
