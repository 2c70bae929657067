// SPDX-License-Identifier: Apache-2.0
// The catalogue's rows; each is defined next to its function (cures_*.cpp). Only for catalogue.cpp,
// which joins them in one order.
#pragma once

#include <span>

#include "remedies/catalogue.h"

namespace saturate {

[[nodiscard]] std::span<const Remedy> model_remedies();
[[nodiscard]] std::span<const Remedy> loader_remedies();
[[nodiscard]] std::span<const Remedy> device_remedies();
[[nodiscard]] std::span<const Remedy> training_remedies();

}  // namespace saturate
