// SPDX-License-Identifier: Apache-2.0
// One check of `saturate selftest`, made by the engine for the CPU and by cuda/ for a GPU.
#pragma once

#include <string>

namespace saturate {

struct SelftestCheck {
    std::string name;
    bool passed = false;
    std::string detail;  // what was compared, with the error seen and allowed
};

}  // namespace saturate
