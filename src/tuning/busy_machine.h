// SPDX-License-Identifier: Apache-2.0
// Tells whether something else uses the machine that a search is about to measure on. Pure.
#pragma once

#include <span>
#include <string>

#include "telemetry/sample.h"

namespace saturate {

// Judges a sample taken while we did nothing. Returns "other work uses 1.1 of 2 cores ...", or ""
// if at most a fifth of the cores is in use and no task waits for one.
[[nodiscard]] std::string busy_machine(const HostSample& resting);
// The same for the samples of a watched run: judges the load that the run itself did not cause.
[[nodiscard]] std::string busy_beside(std::span<const HostSample> watched);

}  // namespace saturate
