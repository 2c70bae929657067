// SPDX-License-Identifier: Apache-2.0
#include "engine/seed.h"

#include <ATen/Context.h>

namespace saturate {

void set_seed(std::uint64_t seed) { at::manual_seed(seed); }

}  // namespace saturate
