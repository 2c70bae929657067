// SPDX-License-Identifier: Apache-2.0
#include "engine/autocast.h"

#include <ATen/autocast_mode.h>

namespace saturate {

Autocast::Autocast(torch::DeviceType device, Precision precision)
    : device_(device), on_(precision != Precision::fp32) {
    if (!on_) return;
    was_enabled_ = at::autocast::is_autocast_enabled(device);
    was_cached_ = at::autocast::is_autocast_cache_enabled();
    was_type_ = at::autocast::get_autocast_dtype(device);
    at::autocast::set_autocast_enabled(device, true);
    at::autocast::set_autocast_dtype(
        device, precision == Precision::bf16 ? torch::kBFloat16 : torch::kHalf);
    at::autocast::increment_nesting();
    at::autocast::set_autocast_cache_enabled(true);
}

Autocast::~Autocast() {
    if (!on_) return;
    // The cast weights are cached until here; the next step changes the weights.
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, was_enabled_);
    at::autocast::set_autocast_dtype(device_, was_type_);
    at::autocast::set_autocast_cache_enabled(was_cached_);
}

GradientScaler::GradientScaler(torch::Device device, double start, std::int64_t growth_interval)
    : growth_interval_(growth_interval) {
    auto options = torch::TensorOptions().device(device).dtype(torch::kFloat);
    scale = torch::full({}, start, options);
    growth = torch::zeros({}, options.dtype(torch::kInt));
    found_infinite = torch::zeros({}, options);
}

void GradientScaler::unscale(torch::TensorList gradients) {
    found_infinite.zero_();
    // Through double, as Python does: in float the reciprocal of a large factor might round twice.
    torch::Tensor inverse = scale.to(torch::kDouble).reciprocal().to(torch::kFloat);
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_infinite, inverse);
}

void GradientScaler::update() {
    constexpr double kGrowth = 2.0, kBackoff = 0.5;
    at::_amp_update_scale_(scale, growth, found_infinite, kGrowth, kBackoff, growth_interval_);
}

void clip_gradients(torch::TensorList gradients, double longest) {
    torch::Tensor length = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)));
    at::_foreach_mul_(gradients, (longest / (length + 1e-6)).clamp_max(1.0));
}

}  // namespace saturate
