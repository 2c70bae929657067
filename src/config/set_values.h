// SPDX-License-Identifier: Apache-2.0
// Changes settings before a configuration is read: `train --set key=value`, and trials of tune.
#pragma once

#include <span>
#include <string>

#include "config/document.h"

namespace saturate {

// Each `key=value` names a setting of the schema. It replaces the value that counts in the file,
// under any name and in any section, or is added at the top. Throws UserError if there is no such
// setting, no '=', or a place that cannot be edited exactly.
[[nodiscard]] Document with_values(const Document& document, std::span<const std::string> values);

}  // namespace saturate
