// SPDX-License-Identifier: Apache-2.0
// What a program printed, for a message that quotes it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace saturate {

// The lines of a log as a terminal shows them: what a progress bar writes again and again ("\r") is
// there once, as it was last.
[[nodiscard]] std::vector<std::string_view> terminal_lines(std::string_view log);

// So many characters of UTF-8 at most, with "..." where there were more.
[[nodiscard]] std::string shortened(std::string_view utf8, std::size_t limit);

}  // namespace saturate
