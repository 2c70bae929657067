// SPDX-License-Identifier: Apache-2.0
// What a terminal needs: lines no wider than it is, and colour for what matters most. Used by
// app/shared/show.h; pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace saturate {

// The line, broken between words where it is longer, and indented as it is (a table's below its
// last column). A word is never broken.
[[nodiscard]] std::string fitted(std::string_view line, std::size_t columns);

// The text (lines of one sentence) in colour where it is a verdict, a gain, a warning or an error,
// as the English that it was made from tells.
[[nodiscard]] std::string coloured(std::string_view text, std::string_view english);

}  // namespace saturate
