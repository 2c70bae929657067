// SPDX-License-Identifier: Apache-2.0
#include "engine/random_state.h"

#include <ATen/Context.h>

#include <mutex>

namespace saturate {

torch::Tensor random_state(const torch::Device& device) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    std::lock_guard lock(generator.mutex());
    return generator.get_state().clone();
}

void set_random_state(const torch::Device& device, const torch::Tensor& state) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    std::lock_guard lock(generator.mutex());
    generator.set_state(state);
}

}  // namespace saturate
