// SPDX-License-Identifier: Apache-2.0
// Finds the control groups of this process, version 1 and 2, from the innermost visible one up to
// the root of the mount. Used by cpu.cpp and memory.cpp.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "probe/machine.h"

namespace saturate {

struct CgroupPath {
    int version = 2;
    std::vector<std::filesystem::path> folders;  // innermost first
};

// The folders with the limits of `controller` ("cpu", "memory"). Both versions may be mounted at
// once. Empty if none is.
[[nodiscard]] std::vector<CgroupPath> cgroup_paths(const ProbeRoots& roots,
                                                   std::string_view controller);

}  // namespace saturate
