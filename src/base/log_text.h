// SPDX-License-Identifier: Apache-2.0
// Prepares a program's output for a message that quotes it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace saturate {

// The lines of a log as a terminal shows them: a line that a progress bar rewrites ("\r") appears
// once, in its last state.
[[nodiscard]] std::vector<std::string_view> terminal_lines(std::string_view log);

// At most `limit` characters of UTF-8. Longer text ends in "...".
[[nodiscard]] std::string shortened(std::string_view utf8, std::size_t limit);

}  // namespace saturate
