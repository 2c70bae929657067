// SPDX-License-Identifier: Apache-2.0
#include "base/figures.h"

#include <fmt/format.h>

namespace saturate {

std::string rate_text(double value) {
    if (value < 100) return fmt::format("{:.1f}", value);
    std::string digits = fmt::format("{:.0f}", value);
    for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), ",");
    return digits;
}

}  // namespace saturate
