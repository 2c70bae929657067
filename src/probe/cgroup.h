// SPDX-License-Identifier: Apache-2.0
// The control groups that this process is in, version 1 and 2, from the innermost one that can be
// seen up to the root of the mount. Used by cpu.cpp and memory.cpp.
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

// Where the limits of `controller` ("cpu", "memory") stand. Both versions may be mounted at once;
// empty when none is.
[[nodiscard]] std::vector<CgroupPath> cgroup_paths(const ProbeRoots& roots,
                                                   std::string_view controller);

}  // namespace saturate
