// SPDX-License-Identifier: Apache-2.0
// Finds the ends of the pieces of a YAML text. yaml-cpp tells where a value begins (before its
// anchor and tag) and what it means, but not where it ends. Pure functions. Positions are bytes of
// `text`; nothing is read past its end.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace saturate {

// The first byte from `at` on that is no space, tab, line end or comment.
[[nodiscard]] std::size_t skip_space(std::string_view text, std::size_t at);
// The first byte from `at` on that is no space or tab.
[[nodiscard]] std::size_t skip_blanks(std::string_view text, std::size_t at);

// The end of the anchors and tags at `at`, if any. Skips nothing that follows the last of them.
// `one_line`: only those in the same line; the next line's belong to the next key.
[[nodiscard]] std::size_t skip_properties(std::string_view text, std::size_t at,
                                          bool one_line = false);

// The end of an anchor's or alias's name that begins at `at`, after & or *.
[[nodiscard]] std::size_t name_end(std::string_view text, std::size_t at);

// The end of the quoted scalar at `at`, after its closing quote. Nothing if it is never closed.
[[nodiscard]] std::optional<std::size_t> quoted_end(std::string_view text, std::size_t at);

// The end of the plain scalar at `at` that was read as `value`: the same characters, apart from
// line folds.
[[nodiscard]] std::optional<std::size_t> plain_end(std::string_view text, std::size_t at,
                                                   std::string_view value);

// The end of the last line of the block scalar (| or >) at `at`. `column`: of its key or dash, from
// 0. Blank lines after it count only if the scalar keeps them (|+).
[[nodiscard]] std::size_t block_end(std::string_view text, std::size_t at, std::size_t column);

// Length of the word at `at` that YAML reads as null (~, null, Null, NULL); 0: none.
[[nodiscard]] std::size_t null_word(std::string_view text, std::size_t at);

// The place of the closing bracket, if only spaces, comments and commas come before it.
[[nodiscard]] std::optional<std::size_t> find_closing(std::string_view text, std::size_t at,
                                                      char bracket);

}  // namespace saturate
