// SPDX-License-Identifier: Apache-2.0
// Settings for how the threads of one operation wait for each other. By default libgomp's threads
// spin for milliseconds before they sleep. If another process needs one of the cores, a spinning
// thread uses up its time slice there, and every operation waits for its next one: with one busy
// core, steps of 10 ms took 800 ms. Threads that sleep sooner get their turn when they wake up.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "process/rank_environment.h"
#include "telemetry/sample.h"

namespace saturate {

// Samples the machine for `ns` while this process does nothing.
[[nodiscard]] HostSample resting_machine(std::int64_t ns);

// Variables to add to the environment of a process that trains on the CPU, given a sample of the
// resting machine. None on a free machine, where spinning is up to a sixth faster. None if the user
// has set them. None for one of several ranks: there the ranks keep each other's cores busy.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> thread_wait(
    const Environment& environment, const HostSample& resting);

}  // namespace saturate
