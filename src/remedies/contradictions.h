// SPDX-License-Identifier: Apache-2.0
// Finds values of a configuration that contradict each other or cannot be meant.
#pragma once

#include <vector>

#include "config/settings.h"
#include "remedies/facts.h"

namespace saturate {

[[nodiscard]] std::vector<Warning> contradictions(const Document& document,
                                                  const Settings& settings, const Facts& facts);

}  // namespace saturate
