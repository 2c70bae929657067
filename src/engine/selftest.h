// SPDX-License-Identifier: Apache-2.0
// Does LibTorch on this machine compute what plain loops compute? Called by `saturate selftest`.
#pragma once

#include <string>
#include <vector>

namespace saturate {

struct SelftestCheck {
    std::string name;
    bool passed = false;
    std::string detail;  // what was compared, with the error seen and allowed
};

[[nodiscard]] std::vector<SelftestCheck> selftest_cpu();

}  // namespace saturate
