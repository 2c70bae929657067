// SPDX-License-Identifier: Apache-2.0
// Formats figures for people.
#pragma once

#include <string>

namespace saturate {

// Samples per second: "61.4", "1,234", "2,064,935".
[[nodiscard]] std::string rate_text(double samples_per_second);
// "12 s", "2.5 s". Less than a tenth of a second is in milliseconds, so nothing takes "0.0 s".
[[nodiscard]] std::string seconds_text(double seconds);

}  // namespace saturate
