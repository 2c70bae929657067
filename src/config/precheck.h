// SPDX-License-Identifier: Apache-2.0
// What can be said about a configuration's bytes before any format is read: binary content, broken
// UTF-8, control characters, far too many values. Keeps the libraries behind it away from what they
// handle badly (yaml-cpp takes byte 4 as the end of the file and guesses UTF-16).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace saturate {

[[nodiscard]] std::vector<Problem> precheck(std::string_view text, const std::string& file);

}  // namespace saturate
