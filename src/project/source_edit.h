// SPDX-License-Identifier: Apache-2.0
// Edits a Python source and leaves every other byte unchanged: comments, line ends, encoding, tabs.
// The command's own interpreter verifies that the result has exactly the wanted meaning
// (ProjectReader::verify). Nothing is written before that.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "project/python_text.h"

namespace saturate {

struct SourceEdit {
    enum class Kind {
        keyword,     // sets the call's keyword `name` to `text`, or adds it
        expression,  // replaces the expression by `text`
        before,      // inserts statements before this one, at its indentation
        after,
        wrap,    // puts the statements into a block that `text` opens ("with x:")
        around,  // puts the expression, in parentheses, in place of the "{}" in `text`
    };
    Kind kind = Kind::expression;
    ByteSpan span;     // the call, the expression or the statements, in the file as read
    std::string name;  // of a keyword
    std::string text;  // statements: one per line, '\t' per level of indentation; ASCII
    bool operator==(const SourceEdit&) const = default;
};

struct EditedSource {
    std::string text;
    std::string problem;  // why it cannot be done; empty: done
};

// Applies all edits at once. All spans refer to the given text. A keyword of a call may be set
// once.
[[nodiscard]] EditedSource apply_source_edits(std::string_view text,
                                              std::span<const SourceEdit> edits);

[[nodiscard]] Json to_json(const SourceEdit& edit);  // as _saturate_reader/verify.py reads it

}  // namespace saturate
