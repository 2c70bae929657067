// SPDX-License-Identifier: Apache-2.0
// Tells from samples of the machine's load whether something else uses it, and whether a watched run
// does anything. Pure.
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
// True if the watched run used next to no CPU from this time on: it waits for something that does
// not come. False if nothing was sampled.
[[nodiscard]] bool is_idle_from(std::int64_t time_ns, std::span<const HostSample> watched);

}  // namespace saturate
