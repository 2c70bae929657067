// SPDX-License-Identifier: Apache-2.0
// Facts that the system tells this process about the machine. More facts are in probe/.
#pragma once

#include <string>

namespace saturate {

// The machine's own name, or "" if unknown.
[[nodiscard]] std::string host_name();

// The number of CPUs that this process may run on (taskset, a container's cpuset); 0: unknown. Does
// not include a CPU quota.
[[nodiscard]] int affinity_cores();

// A path to start this very program by, from a child too, even if its file was removed or replaced
// by a new build meanwhile.
[[nodiscard]] std::string own_program();

}  // namespace saturate
