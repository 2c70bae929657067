// SPDX-License-Identifier: Apache-2.0
// How the threads that compute one operation wait for each other. By default libgomp's spin for
// milliseconds before they sleep. Where another process wants one of the cores, a thread that spins
// there uses up its turn, and at every operation the others wait until it has its next: beside one
// busy core steps of 10 ms took 800. Threads that sleep sooner get their turn when they wake.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "process/rank_environment.h"
#include "telemetry/sample.h"

namespace saturate {

// The machine while this process does nothing, over `ns`.
[[nodiscard]] HostSample resting_machine(std::int64_t ns);

// What is to be added to the environment of a process that trains on the CPU, by a sample of the
// resting machine. Nothing on a machine that is free, where spinning is up to a sixth faster, nor
// where the user has decided, nor for one of several ranks, which are each other's busy cores.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> thread_wait(
    const Environment& environment, const HostSample& resting);

}  // namespace saturate
