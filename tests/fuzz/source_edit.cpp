// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Python source, and a few edits at any places of it: done or refused with a reason.
// When done, what stands before the first and behind the last line that an edit names is the same
// bytes. The tokens of the text lie in it, in order.
#include "project/source_edit.h"

#include <algorithm>
#include <cstdint>

#include "fuzz_input.h"

namespace {

using namespace saturate;

SourceEdit choose(std::string_view text, Bytes& bytes) {
    static const char* const kNames[] = {"num_workers", "fused", "x"};
    static const char* const kLines[] = {"a = 1", "if a:\n\tb()\nc = [1,\n\t2]", "with a:"};
    SourceEdit edit{.kind = static_cast<SourceEdit::Kind>(bytes.next() % 5)};
    edit.span.begin = bytes.below(text.size() + 1);
    edit.span.end = edit.span.begin + bytes.below(text.size() + 1 - edit.span.begin);
    edit.name = kNames[bytes.next() % std::size(kNames)];
    bool has_lines =
        edit.kind != SourceEdit::Kind::keyword && edit.kind != SourceEdit::Kind::expression;
    edit.text = has_lines ? kLines[bytes.next() % std::size(kLines)] : "True";
    return edit;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 12) return 0;
    std::size_t choices = std::min<std::size_t>(size / 2, 24);  // they stand at the end
    Bytes bytes{data + size - choices, choices};
    std::string_view text(reinterpret_cast<const char*>(data), size - choices);
    std::size_t last = 0;
    for (const PythonToken& token : python_tokens(text, {0, text.size()})) {
        require(last <= token.span.begin && token.span.begin <= token.span.end &&
                token.span.end <= text.size());
        last = token.span.end;
    }
    std::vector<SourceEdit> edits;
    for (std::size_t count = 1 + bytes.next() % 3; count > 0; --count)
        edits.push_back(choose(text, bytes));
    EditedSource edited = apply_source_edits(text, edits);
    if (!edited.problem.empty()) return 0;
    std::size_t begin = text.size(), end = 0;
    for (const SourceEdit& edit : edits) {
        begin = std::min(begin, line_begin(text, edit.span.begin));
        end = std::max(end, line_end(text, edit.span.end));
    }
    require(edited.text.starts_with(text.substr(0, begin)));
    require(edited.text.ends_with(text.substr(end)));
    return 0;
}
