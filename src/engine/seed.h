// SPDX-License-Identifier: Apache-2.0
// Seeds all of LibTorch's generators. Called before a job creates its weights.
#pragma once

#include <cstdint>

namespace saturate {

void set_seed(std::uint64_t seed);

}  // namespace saturate
