// SPDX-License-Identifier: Apache-2.0
// The text of a Python source as an edit needs it: tokens with their bytes, the arguments of a
// call, lines and indentation. Not a parser: the reader (python/_saturate_reader) says where a call
// or a statement stands, and every edit is checked by the interpreter's own parser.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

struct ByteSpan {  // bytes of a file as it is on disk, [begin, end)
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

// Tokens between two places of the text, blanks and line continuations left out. A newline inside
// brackets is a token too.
[[nodiscard]] std::vector<PythonToken> python_tokens(std::string_view text, ByteSpan part);

struct CallArgument {
    std::string name;           // of a keyword; empty: by position
    int stars = 0;              // 1 for *x, 2 for **x
    bool is_generator = false;  // `x for x in y` without parentheses of its own
    ByteSpan whole;             // with its name
    ByteSpan value;
};

struct CallText {
    ByteSpan inside;  // between its parentheses
    std::vector<CallArgument> arguments;
    std::optional<std::size_t> trailing_comma;  // behind the last argument
    [[nodiscard]] const CallArgument* find(std::string_view keyword) const;
};

// The call whose expression has these bytes; nothing when it does not end in a parenthesis that
// was opened in it.
[[nodiscard]] std::optional<CallText> read_call(std::string_view text, ByteSpan call);

[[nodiscard]] std::size_t line_begin(std::string_view text, std::size_t at);
[[nodiscard]] std::size_t line_end(std::string_view text, std::size_t at);  // before its newline
[[nodiscard]] std::string_view newline_at(std::string_view text, std::size_t at);  // "\n" or "\r\n"
// Blanks between the line's start and `at`; nothing when something else stands there.
[[nodiscard]] std::optional<std::string> indentation(std::string_view text, std::size_t at);
// One more level as this file writes it, beside this indentation.
[[nodiscard]] std::string indent_unit(std::string_view text, std::string_view beside);

}  // namespace saturate
