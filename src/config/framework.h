// SPDX-License-Identifier: Apache-2.0
// Whose configurations are in a dialect: rows `framework` of src/config/aliases.csv.
#pragma once

#include <string>
#include <vector>

#include "config/dialect.h"

namespace saturate {

// As python/_saturate_reader/names.py calls what a program imports: "transformers".
[[nodiscard]] std::vector<std::string> frameworks_of(const Dialect& dialect);

}  // namespace saturate
