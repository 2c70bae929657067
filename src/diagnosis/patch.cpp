// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/patch.h"

#include <fmt/format.h>

#include "base/text.h"

namespace saturate {
namespace {

struct SourceLines {
    std::int64_t first = 1;  // line number of lines[0]
    std::vector<std::string> lines;

    [[nodiscard]] std::string* at(std::int64_t number) {
        std::int64_t index = number - first;
        return index >= 0 && index < static_cast<std::int64_t>(lines.size())
                   ? &lines[static_cast<std::size_t>(index)]
                   : nullptr;
    }
};

std::string indent_of(const std::string& line) {
    return line.substr(0, line.find_first_not_of(" \t"));
}

// Replaces the text of the value in its line. Returns false if it spans several lines.
bool replace_value(SourceLines& source, const Json& place, const std::string& value) {
    auto line = place["line"].integer(), end_line = place["end_line"].integer();
    auto column = place["column"].integer(), end = place["end_column"].integer();
    if (!line || line != end_line || !column || !end || *column > *end) return false;
    std::string* text = source.at(*line);
    if (!text || *end > static_cast<std::int64_t>(text->size())) return false;
    text->replace(static_cast<std::size_t>(*column), static_cast<std::size_t>(*end - *column),
                  value);
    return true;
}

// Inserts keywords before the closing parenthesis, in the style of the call: on the same line, or
// on a new line if the parenthesis is alone on its line. Returns false if there is no parenthesis.
bool insert_keywords(SourceLines& source, const Json& call, const std::string& added) {
    std::int64_t end_line = call["end_line"].integer().value_or(0);
    std::int64_t column = call["end_column"].integer().value_or(0) - 1;
    std::string* line = source.at(end_line);
    if (!line || column < 0 || column >= static_cast<std::int64_t>(line->size())) return false;
    auto paren = static_cast<std::size_t>(column);
    if ((*line)[paren] != ')') return false;
    std::string_view before = trim(std::string_view(*line).substr(0, paren));
    if (!before.empty()) {
        const char* between = before.ends_with('(') ? "" : before.ends_with(',') ? " " : ", ";
        line->insert(line->find_last_not_of(" \t", paren - 1) + 1, between + added);
        return true;
    }
    std::string* above = source.at(end_line - 1);
    if (!above || above->find('#') != std::string::npos) return false;
    std::string_view text = trim(*above);
    if (text.ends_with('(')) return false;
    std::string indent = indent_of(*above);
    bool has_comma = text.ends_with(',');
    if (!has_comma) *above += ',';
    std::int64_t index = end_line - source.first;
    source.lines.insert(source.lines.begin() + index,
                        fmt::format("{}{}{}", indent, added, has_comma ? "," : ""));
    return true;
}

std::string diff(const std::string& file, std::int64_t first,
                 const std::vector<std::string>& before, const std::vector<std::string>& after) {
    std::size_t head = 0, tail = 0;
    while (head < before.size() && head < after.size() && before[head] == after[head]) ++head;
    while (tail < before.size() - head && tail < after.size() - head &&
           before[before.size() - 1 - tail] == after[after.size() - 1 - tail])
        ++tail;
    std::string out = fmt::format("--- {}\n+++ {}\n@@ -{},{} +{},{} @@\n", file, file, first,
                                  before.size(), first, after.size());
    for (std::size_t i = 0; i < head; ++i) out += " " + before[i] + "\n";
    for (std::size_t i = head; i < before.size() - tail; ++i) out += "-" + before[i] + "\n";
    for (std::size_t i = head; i < after.size() - tail; ++i) out += "+" + after[i] + "\n";
    for (std::size_t i = before.size() - tail; i < before.size(); ++i)
        out += " " + before[i] + "\n";
    return out;
}

}  // namespace

std::string keyword_patch(const Json& site, const Json& call,
                          const std::vector<KeywordChange>& changes) {
    if (!call.is_object() || changes.empty()) return "";
    SourceLines source{.first = call["first_line"].integer().value_or(1)};
    for (const Json& line : call["lines"].items())
        source.lines.push_back(line.string().value_or(""));
    std::vector<std::string> before = source.lines;
    std::vector<std::string> added;
    for (const KeywordChange& change : changes) {
        const Json& place = call["keywords"][change.name];
        if (place.is_null())
            added.push_back(fmt::format("{}={}", change.name, change.value));
        else if (!replace_value(source, place, change.value))
            return "";
    }
    if (!added.empty()) {
        if (call["spreads"].boolean().value_or(true)) return "";
        // A value replaced on the last line has moved the parenthesis.
        std::int64_t moved = 0;
        std::int64_t end_line = call["end_line"].integer().value_or(0);
        if (std::string* line = source.at(end_line)) {
            auto old = static_cast<std::size_t>(end_line - source.first);
            moved = static_cast<std::int64_t>(line->size()) -
                    static_cast<std::int64_t>(before[old].size());
        }
        Json shifted = call;
        shifted.set("end_column", call["end_column"].integer().value_or(0) + moved);
        if (!insert_keywords(source, shifted, join(added, ", "))) return "";
    }
    if (source.lines == before) return "";
    return diff(site["file"].string().value_or("?"), source.first, before, source.lines);
}

}  // namespace saturate
