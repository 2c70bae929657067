// SPDX-License-Identifier: Apache-2.0
// One check of `saturate selftest`. The engine has checks for every device, cuda/ for a GPU.
#pragma once

#include <functional>
#include <string>
#include <utility>

namespace saturate {

struct SelftestCheck {
    std::string name;
    bool passed = false;
    std::string detail;  // what was compared, with the actual and the allowed error
    double seconds = 0;
};

// A check that was not run yet.
struct SelftestItem {
    std::string name;
    std::function<SelftestCheck()> run;  // the caller fills in name and seconds
};

}  // namespace saturate
