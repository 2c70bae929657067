// SPDX-License-Identifier: Apache-2.0
// The text of docs/settings.md, made from the schema and the alias table. A test compares the two.
#pragma once

#include <string>

namespace saturate {

[[nodiscard]] std::string settings_reference();

}  // namespace saturate
