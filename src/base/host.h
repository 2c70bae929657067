// SPDX-License-Identifier: Apache-2.0
// What this process can ask the system about the machine it is on. More is in probe/.
#pragma once

#include <string>

namespace saturate {

// As the machine calls itself; empty where it does not say.
[[nodiscard]] std::string host_name();

// The CPUs that this process may run on (taskset, a container's cpuset); 0: unknown. A CPU quota
// is not in it.
[[nodiscard]] int affinity_cores();

}  // namespace saturate
