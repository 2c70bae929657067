// SPDX-License-Identifier: Apache-2.0
// Prints the text of all verbs: translated into the reader's language, wrapped to the width of the
// terminal, and coloured if it is a terminal. Output for programs (JSON, CSV, files, pages) does
// not go through here.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "words/words.h"

namespace saturate {

// The language of this process. dispatch() sets it once, before a verb runs.
void set_language(Language language);
[[nodiscard]] Language shown_language();

// Prints results to stdout, messages to stderr.
void show(std::FILE* to, std::string_view text);
template <typename First, typename... Rest>
void show(std::FILE* to, fmt::format_string<First, Rest...> text, First&& first, Rest&&... rest) {
    show(to, std::string_view(
                 fmt::format(text, std::forward<First>(first), std::forward<Rest>(rest)...)));
}

// Returns the text in the reader's language, for a line that is redrawn often.
[[nodiscard]] std::string shown(std::string_view text);

// True for a terminal with colour: NO_COLOR is not set and TERM is not dumb.
[[nodiscard]] bool wants_colour(std::FILE* to);
// The same for colour of single words in a line, which translations do not support.
[[nodiscard]] bool wants_coloured_words(std::FILE* to);
// Whether text comes with its lines broken: English that does not go to a terminal.
[[nodiscard]] bool has_broken_lines(std::FILE* to);
// Returns the width of the terminal, else COLUMNS, else 80, or 0 if `to` is not a terminal.
[[nodiscard]] std::size_t columns_of(std::FILE* to);

}  // namespace saturate
