// SPDX-License-Identifier: Apache-2.0
// Translates yaml-cpp's messages for the author of the file. Used by config/yaml.cpp.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace saturate {

// `line`: the text of the line where the library stopped.
[[nodiscard]] Problem explain_yaml_error(Place where, std::string_view message,
                                         std::string_view line);

}  // namespace saturate
