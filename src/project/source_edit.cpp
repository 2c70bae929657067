// SPDX-License-Identifier: Apache-2.0
#include "project/source_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace saturate {

namespace {

struct Replacement {
    ByteSpan span;
    int order = 0;  // among edits at the same place
    std::string text;
};
constexpr int kBefore = 0, kHeader = 1, kIndent = 2, kInside = 3, kAfter = 4;

class Editor {
  public:
    Editor(std::string_view text, std::span<const SourceEdit> edits) : text_(text), edits_(edits) {}

    EditedSource done() {
        std::map<std::size_t, std::vector<const SourceEdit*>> keywords;  // key: the end of the call
        for (const SourceEdit& edit : edits_) {
            if (edit.span.end > text_.size() || edit.span.begin > edit.span.end)
                return {"", "the place is outside the file"};
            if (edit.kind == SourceEdit::Kind::keyword)
                keywords[edit.span.end].push_back(&edit);
            else
                one(edit);
        }
        for (const auto& [end, group] : keywords) set_keywords(group);
        if (!problem_.empty()) return {"", problem_};
        return join_all();
    }

  private:
    void refuse(std::string why) {
        if (problem_.empty()) problem_ = std::move(why);
    }

    void replace(ByteSpan span, int order, std::string text) {
        replacements_.push_back({span, order, std::move(text)});
    }

    void one(const SourceEdit& edit) {
        switch (edit.kind) {
            case SourceEdit::Kind::keyword:
                break;
            case SourceEdit::Kind::expression:
                replace(edit.span, kInside, edit.text);
                break;
            case SourceEdit::Kind::before:
                if (auto margin = margin_of(edit.span)) {
                    std::size_t at = edit.span.begin - margin->size();
                    replace({at, at}, kBefore, statements(edit, *margin, at, false));
                }
                break;
            case SourceEdit::Kind::after:
                if (auto margin = margin_of(edit.span)) {
                    std::size_t at = line_end(text_, edit.span.end);
                    replace({at, at}, kAfter, statements(edit, *margin, at, true));
                }
                break;
            case SourceEdit::Kind::wrap:
                wrap(edit);
                break;
            case SourceEdit::Kind::around:
                around(edit);
                break;
        }
    }

    // The indentation of whole statements. Refuses if other text is on their first or last line.
    std::optional<std::string> margin_of(ByteSpan span) {
        // The syntax tree lists elif as a statement, but nothing can be put before or around it.
        std::string_view word = text_.substr(span.begin, std::string_view("elif ").size());
        if (word == "elif " || word == "elif(") {
            refuse("an elif belongs to its if");
            return std::nullopt;
        }
        std::optional<std::string> margin = indentation(text_, span.begin);
        ByteSpan rest{span.end, line_end(text_, span.end)};
        std::vector<PythonToken> behind = python_tokens(text_, rest);
        bool is_alone = behind.empty() || behind.front().kind == PythonToken::Kind::comment;
        if (!margin || !is_alone) {
            refuse("there is another statement on the same line");
            return std::nullopt;
        }
        return margin;
    }

    // The extra indentation from blocks that wrap this place.
    std::string added_margin(ByteSpan span, const std::string& margin) {
        std::string out;
        for (const SourceEdit& edit : edits_) {
            if (edit.kind == SourceEdit::Kind::wrap && edit.span.contains(span) &&
                edit.span.begin != span.begin)
                out += indent_unit(text_, margin);
        }
        return out;
    }

    std::string statements(const SourceEdit& edit, const std::string& margin, std::size_t at,
                           bool is_behind) {
        std::string unit = indent_unit(text_, margin);
        std::string full = margin + added_margin(edit.span, margin);
        std::string newline(newline_at(text_, at));
        std::string out;
        for (std::string_view line : split(edit.text, '\n')) {
            std::string indented = full;
            while (line.starts_with('\t')) {
                indented += unit;
                line.remove_prefix(1);
            }
            indented += line;
            out += is_behind ? newline + indented : indented + newline;
        }
        return out;
    }

    void wrap(const SourceEdit& edit) {
        std::optional<std::string> margin = margin_of(edit.span);
        if (!margin) return;
        std::string unit = indent_unit(text_, *margin);
        std::size_t first = edit.span.begin - margin->size();
        replace({first, first}, kHeader,
                fmt::format("{}{}{}{}", *margin, added_margin(edit.span, *margin), edit.text,
                            newline_at(text_, first)));
        std::vector<ByteSpan> strings;
        for (const PythonToken& token : python_tokens(text_, edit.span))
            if (token.kind == PythonToken::Kind::string) strings.push_back(token.span);
        for (std::size_t at = first; at < edit.span.end;) {
            bool in_string = std::ranges::any_of(
                strings, [&](ByteSpan span) { return span.begin < at && at < span.end; });
            std::size_t end = line_end(text_, at);
            bool is_blank = trim(text_.substr(at, end - at)).empty();
            if (!in_string && !is_blank) replace({at, at}, kIndent, unit);
            std::size_t next = text_.find('\n', at);
            if (next == std::string_view::npos) break;
            at = next + 1;
        }
    }

    void around(const SourceEdit& edit) {
        constexpr std::string_view kHole = "({})";
        std::size_t hole = edit.text.find(kHole);
        if (hole == std::string::npos) return refuse("the text has no place for the expression");
        std::size_t begin = hole + 1, end = hole + kHole.size() - 1;
        replace({edit.span.begin, edit.span.begin}, kInside, edit.text.substr(0, begin));
        replace({edit.span.end, edit.span.end}, kInside, edit.text.substr(end));
    }

    // Adds keywords after the last argument: on its line, or on their own lines if the call is
    // written that way. Never inside a comment.
    void set_keywords(const std::vector<const SourceEdit*>& group) {
        std::optional<CallText> call = read_call(text_, group.front()->span);
        if (!call) return refuse("the call's parentheses cannot be found");
        std::vector<std::string> added;
        std::set<std::string> names;
        for (const SourceEdit* edit : group) {
            if (!names.insert(edit->name).second)
                return refuse(fmt::format("{} would be set twice", edit->name));
            if (const CallArgument* there = call->find(edit->name))
                replace(there->value, kInside, edit->text);
            else
                added.push_back(fmt::format("{}={}", edit->name, edit->text));
        }
        if (added.empty()) return;
        if (call->arguments.empty()) {
            replace({call->inside.begin, call->inside.begin}, kInside, join(added, ", "));
            return;
        }
        const CallArgument& last = call->arguments.back();
        if (last.is_generator) {
            // A lone generator needs no parentheses; next to another argument it does.
            replace({last.whole.begin, last.whole.begin}, kInside, "(");
            replace({last.whole.end, last.whole.end}, kInside, ")");
        }
        std::optional<std::string> margin = indentation(text_, last.whole.begin);
        std::size_t comma = call->trailing_comma.value_or(last.whole.end);
        std::size_t end = line_end(text_, comma);
        if (!margin || end >= call->inside.end) {
            replace({last.whole.end, last.whole.end}, kInside, ", " + join(added, ", "));
            return;
        }
        std::string newline(newline_at(text_, end));
        std::string lines;
        if (!call->trailing_comma) replace({comma, comma}, kInside, ",");
        for (std::size_t i = 0; i < added.size(); ++i) {
            bool has_comma = call->trailing_comma || i + 1 < added.size();
            lines += fmt::format("{}{}{}{}", newline, *margin, added[i], has_comma ? "," : "");
        }
        replace({end, end}, kAfter, lines);
    }

    EditedSource join_all() {
        std::ranges::stable_sort(replacements_, [](const Replacement& a, const Replacement& b) {
            return std::pair(a.span.begin, a.order) < std::pair(b.span.begin, b.order);
        });
        std::string out;
        std::size_t at = 0;
        for (const Replacement& part : replacements_) {
            if (part.span.begin < at) return {"", "two changes affect the same place"};
            out += text_.substr(at, part.span.begin - at);
            out += part.text;
            at = part.span.end;
        }
        out += text_.substr(at);
        return {std::move(out), ""};
    }

    std::string_view text_;
    std::span<const SourceEdit> edits_;
    std::vector<Replacement> replacements_;
    std::string problem_;
};

}  // namespace

EditedSource apply_source_edits(std::string_view text, std::span<const SourceEdit> edits) {
    return Editor(text, edits).done();
}

Json to_json(const SourceEdit& edit) {
    static constexpr const char* kNames[] = {"keyword", "expression", "before",
                                             "after",   "wrap",       "around"};
    return Json::object({{"kind", kNames[static_cast<int>(edit.kind)]},
                         {"bytes", Json::array({edit.span.begin, edit.span.end})},
                         {"name", edit.name},
                         {"text", edit.text}});
}

}  // namespace saturate
