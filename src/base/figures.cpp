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

std::string seconds_text(double seconds) {
    if (seconds < 0.1) return fmt::format("{:.{}f} ms", 1e3 * seconds, seconds < 0.001 ? 1 : 0);
    return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 1 : 0);
}

}  // namespace saturate
