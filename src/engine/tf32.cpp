// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>

#include "engine/device_backend.h"

namespace saturate {

// LibTorch has an old and a new switch for each library and refuses to compute if they disagree;
// these two calls set both.
void use_tf32(bool on) {
    at::Context& context = at::globalContext();
    context.setFloat32MatmulPrecision(on ? "high" : "highest");
    context.setAllowTF32CuDNN(on);
}

}  // namespace saturate
