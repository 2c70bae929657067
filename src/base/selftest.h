// SPDX-License-Identifier: Apache-2.0
// One check of `saturate selftest`, made by the engine for every device and by cuda/ for a GPU.
#pragma once

#include <functional>
#include <string>
#include <utility>

namespace saturate {

struct SelftestCheck {
    std::string name;
    bool passed = false;
    std::string detail;  // what was compared, with the error seen and allowed
    double seconds = 0;
};

// A check that is still to be made.
struct SelftestItem {
    std::string name;
    std::function<SelftestCheck()> run;  // its name and seconds are filled in
};

}  // namespace saturate
