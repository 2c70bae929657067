// SPDX-License-Identifier: Apache-2.0
// Prepares text for a terminal: wraps lines to its width and colours the most important ones. Used
// by app/shared/show.cpp; pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace saturate {

// Breaks the line between words if it is wider than `columns`. The rest is indented a little more
// than the line, or up to the last column of a table. Never breaks a word. Lines of a command to
// copy end in a backslash.
[[nodiscard]] std::string fitted(std::string_view line, std::size_t columns);

// Colours the text (the lines of one sentence) if it is a verdict, a gain, a warning or an error.
// The kind is recognised from the English original.
[[nodiscard]] std::string coloured(std::string_view text, std::string_view english);

// A line of a patch, which begins at `from`: removed in red, added in green.
[[nodiscard]] std::string coloured_patch(std::string_view line, std::size_t from);

}  // namespace saturate
