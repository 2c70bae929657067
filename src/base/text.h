// SPDX-License-Identifier: Apache-2.0
// Small text functions that the standard library lacks. Pure functions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

[[nodiscard]] std::string_view trim(std::string_view text);
[[nodiscard]] std::string lower(std::string_view text);  // ASCII only, both
[[nodiscard]] std::string upper(std::string_view text);
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view between);
// A command line to copy into a shell: words with blanks or other special characters in quotes.
[[nodiscard]] std::string shell_words(std::span<const std::string> words);

[[nodiscard]] bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words);

[[nodiscard]] std::string or_dash(std::string_view text);  // "-" for an empty text

// The whole text as a number, or nothing: "12" is a number; "12x", "" and " 12" are not.
// parse_number accepts inf and nan.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

// Returns the candidate nearest to a mistyped word, if one is near enough.
[[nodiscard]] std::optional<std::string> closest(std::string_view word,
                                                 std::span<const std::string> candidates);

[[nodiscard]] std::string bytes_text(std::uint64_t bytes);  // "23.5 GiB"

// The columns of UTF-8 text on a terminal: Chinese characters take two.
[[nodiscard]] std::size_t display_width(std::string_view utf8);
[[nodiscard]] std::string pad_right(std::string_view utf8, std::size_t width);

// Shows control characters and broken UTF-8 as escapes, and cuts long text with "...". For messages
// that quote a user's file.
[[nodiscard]] std::string in_quotes(std::string_view raw, std::size_t limit = 60);

}  // namespace saturate
