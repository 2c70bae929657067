// SPDX-License-Identifier: Apache-2.0
// Seeds every generator of LibTorch; called before a job makes its weights.
#pragma once

#include <cstdint>

namespace saturate {

void set_seed(std::uint64_t seed);

}  // namespace saturate
