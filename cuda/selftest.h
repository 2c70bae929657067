// SPDX-License-Identifier: Apache-2.0
// Checks of `saturate selftest` for the basics of every CUDA path.
#pragma once

#include <vector>

#include "base/selftest.h"

namespace saturate {

[[nodiscard]] std::vector<SelftestItem> cuda_selftest_items();

}  // namespace saturate
