// SPDX-License-Identifier: Apache-2.0
// How the learning rate follows the batch: linearly for SGD, by the square root for Adam and
// similar optimizers, whose update does not grow with the gradient.
#pragma once

#include <string>
#include <string_view>

namespace saturate {

enum class LearningRateRule { none, square_root, linear };
[[nodiscard]] LearningRateRule rule_for(const std::string& optimizer);
[[nodiscard]] double scaled_learning_rate(double rate, double batch_ratio, LearningRateRule rule);
[[nodiscard]] std::string_view rule_name(LearningRateRule rule);

}  // namespace saturate
