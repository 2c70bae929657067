// SPDX-License-Identifier: Apache-2.0
// Everything a verb says goes through here: in the reader's language, no wider than the terminal,
// with colour where it is one. What programs read (JSON, CSV, files, pages) is printed as it is.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "words/words.h"

namespace saturate {

// Of this process; dispatch sets it once, before a verb runs.
void set_language(Language language);
[[nodiscard]] Language shown_language();

// stdout for results, stderr for talk.
void show(std::FILE* to, std::string_view text);
template <typename First, typename... Rest>
void show(std::FILE* to, fmt::format_string<First, Rest...> text, First&& first, Rest&&... rest) {
    show(to, std::string_view(
                 fmt::format(text, std::forward<First>(first), std::forward<Rest>(rest)...)));
}

// In the reader's language, for a line that is drawn over and over.
[[nodiscard]] std::string shown(std::string_view text);

// A terminal that wants colour: NO_COLOR is not set, TERM is not dumb.
[[nodiscard]] bool wants_colour(std::FILE* to);
// The same for single words within a line, which a translation does not have.
[[nodiscard]] bool wants_coloured_words(std::FILE* to);
// Of the terminal: what it says, else COLUMNS, else 80; 0 where `to` is no terminal.
[[nodiscard]] std::size_t columns_of(std::FILE* to);

}  // namespace saturate
