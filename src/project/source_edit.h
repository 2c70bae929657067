// SPDX-License-Identifier: Apache-2.0
// Edits of a Python source that leave every other byte as it was: comments, line ends, encoding,
// tabs. Whether the result means what was asked for and nothing else is proven by the command's
// own interpreter (project/verify.h); nothing is written before that.
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
        keyword,     // the call's keyword `name` has the value `text`, added where it is not there
        expression,  // the expression is `text`
        before,      // statements stand before this one, at its indentation
        after,
        wrap,    // the statements of the span stand in a block that `text` opens ("with x:")
        around,  // the expression stands where `text` has "{}", in parentheses
    };
    Kind kind = Kind::expression;
    ByteSpan span;     // of the call, the expression or the statements, in the file as it was read
    std::string name;  // of a keyword
    std::string text;  // statements: one per line, '\t' for a level of indentation; ASCII
    bool operator==(const SourceEdit&) const = default;
};

struct EditedSource {
    std::string text;
    std::string problem;  // why it cannot be done; empty: done
};

// All edits at once; spans are those of the text that is given. A keyword of a call may be named
// once.
[[nodiscard]] EditedSource apply_source_edits(std::string_view text,
                                              std::span<const SourceEdit> edits);

[[nodiscard]] Json to_json(const SourceEdit& edit);  // as _saturate_reader/verify.py takes it

}  // namespace saturate
