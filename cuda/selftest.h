// SPDX-License-Identifier: Apache-2.0
// What every CUDA path of the engine stands on, as checks of `saturate selftest`.
#pragma once

#include <vector>

#include "base/selftest.h"

namespace saturate {

[[nodiscard]] std::vector<SelftestItem> cuda_selftest_items();

}  // namespace saturate
