// SPDX-License-Identifier: Apache-2.0
// Checks the bytes of a configuration before any format is read: binary content, broken UTF-8,
// control characters, far too many values. Protects the parser libraries from input that they
// handle badly (yaml-cpp takes byte 4 as the end of the file and guesses UTF-16).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace saturate {

[[nodiscard]] std::vector<Problem> precheck(std::string_view text, const std::string& file);

}  // namespace saturate
