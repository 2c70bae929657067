// SPDX-License-Identifier: Apache-2.0
// The text of a Python source for edits: tokens with their bytes, arguments of a call, lines and
// indentation. This is no parser: the reader (python/_saturate_reader) gives the place of a call or
// statement, and the interpreter's own parser checks every edit.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

// Bytes of a file on disk, [begin, end).
struct ByteSpan {
    std::size_t begin = 0;
    std::size_t end = 0;
    [[nodiscard]] bool contains(const ByteSpan& other) const {
        return begin <= other.begin && other.end <= end;
    }
    bool operator==(const ByteSpan&) const = default;
};

struct PythonToken {
    enum class Kind { word, string, comment, newline, sign };
    Kind kind = Kind::sign;
    ByteSpan span;
};

// Tokens of this part of the text, without blanks and line continuations. A newline inside brackets
// is a token too.
[[nodiscard]] std::vector<PythonToken> python_tokens(std::string_view text, ByteSpan part);

struct CallArgument {
    std::string name;           // of a keyword; empty: positional
    int stars = 0;              // 1 for *x, 2 for **x
    bool is_generator = false;  // `x for x in y` without its own parentheses
    ByteSpan whole;             // including the name
    ByteSpan value;
};

struct CallText {
    ByteSpan inside;  // between its parentheses
    std::vector<CallArgument> arguments;
    std::optional<std::size_t> trailing_comma;  // after the last argument
    [[nodiscard]] const CallArgument* find(std::string_view keyword) const;
};

// Splits the call at these bytes. Returns nothing if the bytes do not end with a parenthesis that
// was opened in them.
[[nodiscard]] std::optional<CallText> read_call(std::string_view text, ByteSpan call);

[[nodiscard]] std::size_t line_begin(std::string_view text, std::size_t at);
[[nodiscard]] std::size_t line_end(std::string_view text, std::size_t at);  // before its newline
[[nodiscard]] std::string_view newline_at(std::string_view text, std::size_t at);  // "\n" or "\r\n"
// The blanks between the start of the line and `at`, or nothing if the line has other text there.
[[nodiscard]] std::optional<std::string> indentation(std::string_view text, std::size_t at);
// One more level of indentation in the style of this file, for a line with indentation `beside`.
[[nodiscard]] std::string indent_unit(std::string_view text, std::string_view beside);

}  // namespace saturate
