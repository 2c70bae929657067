// SPDX-License-Identifier: Apache-2.0
// Where the pieces of a YAML text end. yaml-cpp says where a value begins (before its anchor and
// tag) and what it means, but not where it ends: that is found here, by the bytes. Pure functions;
// positions are bytes of `text`, and nothing is read behind its end.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace saturate {

// The first byte from `at` that is no space, tab, line end or comment.
[[nodiscard]] std::size_t skip_space(std::string_view text, std::size_t at);
// The first byte from `at` that is no space or tab.
[[nodiscard]] std::size_t skip_blanks(std::string_view text, std::size_t at);

// Behind the anchors and tags that stand at `at`, if any; not behind what follows the last of them.
// `one_line`: only those of the same line; the next line's are the next key's.
[[nodiscard]] std::size_t skip_properties(std::string_view text, std::size_t at,
                                          bool one_line = false);

// The end of an anchor's or alias's name that begins at `at`, behind & or *.
[[nodiscard]] std::size_t name_end(std::string_view text, std::size_t at);

// Behind the closing quote of the quoted scalar at `at`; nothing when it is never closed.
[[nodiscard]] std::optional<std::size_t> quoted_end(std::string_view text, std::size_t at);

// Behind the plain scalar at `at` that was read as `value`: the same characters, line folds aside.
[[nodiscard]] std::optional<std::size_t> plain_end(std::string_view text, std::size_t at,
                                                   std::string_view value);

// Behind the last line of the block scalar (| or >) at `at`. `column`: of the key or dash it
// belongs to, from 0. Blank lines behind it count only where it keeps them (|+).
[[nodiscard]] std::size_t block_end(std::string_view text, std::size_t at, std::size_t column);

// The word at `at` that YAML reads as null (~, null, Null, NULL); 0 when there is none.
[[nodiscard]] std::size_t null_word(std::string_view text, std::size_t at);

// The closing bracket, looked for from `at` over spaces, comments and commas only.
[[nodiscard]] std::optional<std::size_t> find_closing(std::string_view text, std::size_t at,
                                                      char bracket);

}  // namespace saturate
