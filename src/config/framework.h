// SPDX-License-Identifier: Apache-2.0
// The framework whose configurations use a dialect: rows `framework` of src/config/aliases.csv.
#pragma once

#include <string>
#include <vector>

#include "config/dialect.h"

namespace saturate {

// Names as in python/_saturate_reader/names.py, such as "transformers".
[[nodiscard]] std::vector<std::string> frameworks_of(const Dialect& dialect);

}  // namespace saturate
