// SPDX-License-Identifier: Apache-2.0
// The type of a scalar for the program that reads the file: PyYAML (YAML 1.1), json or tomllib. An
// edit keeps that type.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/document.h"

namespace saturate {

enum class ScalarType { null, boolean, whole, number, word };

// `quoted`: Node::quoted.
[[nodiscard]] ScalarType scalar_type(std::string_view text, bool quoted, Format format);

// The number that the text means: 8 for 0x8 and, in YAML, for 010; 1000 for 1_000. A word that
// other readers take for a number (1e-3 in YAML) counts too. Nothing for words, infinities and nan.
[[nodiscard]] std::optional<double> scalar_number(std::string_view text, Format format);

}  // namespace saturate
