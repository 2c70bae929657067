// SPDX-License-Identifier: Apache-2.0
// What yaml-cpp's messages mean for someone who wrote the file. Used by config/yaml.cpp.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace saturate {

// `line`: the text of the line in which the library stopped.
[[nodiscard]] Problem explain_yaml_error(Place where, std::string_view message,
                                         std::string_view line);

}  // namespace saturate
