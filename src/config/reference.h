// SPDX-License-Identifier: Apache-2.0
// docs/settings.md, made from the schema and the alias table; a test compares the two.
#pragma once

#include <string>

namespace saturate {

[[nodiscard]] std::string settings_reference();

}  // namespace saturate
