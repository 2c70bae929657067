// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_scan.h"

#include <algorithm>

namespace saturate {

namespace {

constexpr std::string_view kBlank = " \t";
constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kNameEnd = "[]{}, \t\r\n";

std::size_t find_not_of(std::string_view text, std::string_view set, std::size_t at) {
    return std::min(text.find_first_not_of(set, at), text.size());
}

std::size_t find_of(std::string_view text, std::string_view set, std::size_t at) {
    return std::min(text.find_first_of(set, at), text.size());
}

}  // namespace

std::size_t skip_blanks(std::string_view text, std::size_t at) {
    return find_not_of(text, kBlank, at);
}

std::size_t skip_space(std::string_view text, std::size_t at) {
    while (true) {
        at = find_not_of(text, kSpace, at);
        if (at == text.size() || text[at] != '#') return at;
        at = find_of(text, "\n", at);
    }
}

std::size_t name_end(std::string_view text, std::size_t at) { return find_of(text, kNameEnd, at); }

std::size_t skip_properties(std::string_view text, std::size_t at, bool one_line) {
    std::size_t end = std::min(at, text.size());
    for (at = end; at < text.size() && (text[at] == '&' || text[at] == '!');) {
        bool verbatim = text.substr(at).starts_with("!<");
        end = verbatim ? std::min(text.find('>', at), text.size() - 1) + 1 : name_end(text, at);
        at = one_line ? skip_blanks(text, end) : skip_space(text, end);
    }
    return end;
}

std::optional<std::size_t> quoted_end(std::string_view text, std::size_t at) {
    char quote = text[at];
    for (++at; at < text.size(); ++at) {
        if (quote == '"' && text[at] == '\\') {
            ++at;
        } else if (text[at] == quote) {
            bool doubled = quote == '\'' && text.substr(at + 1).starts_with('\'');
            if (!doubled) return at + 1;
            ++at;
        }
    }
    return std::nullopt;
}

std::optional<std::size_t> plain_end(std::string_view text, std::size_t at,
                                     std::string_view value) {
    for (std::size_t i = 0; i < value.size();) {
        if (kSpace.find(value[i]) != std::string_view::npos) {
            std::size_t behind = find_not_of(text, kSpace, at);
            if (behind == at) return std::nullopt;
            at = behind;
            i = find_not_of(value, kSpace, i);
        } else {
            if (at >= text.size() || text[at] != value[i]) return std::nullopt;
            ++at;
            ++i;
        }
    }
    return at;
}

std::size_t block_end(std::string_view text, std::size_t at, std::size_t column) {
    std::size_t line = find_of(text, "\n", at);
    std::string_view header = text.substr(at, line - at);
    header = header.substr(0, header.find_first_of(" \t#\r"));
    bool keeps = header.find('+') != std::string_view::npos;
    std::size_t digit = header.find_first_of("123456789");
    bool known = digit != std::string_view::npos;
    std::size_t indent = column + (known ? static_cast<std::size_t>(header[digit] - '0') : 1);
    std::size_t end = line > at && text[line - 1] == '\r' ? line - 1 : line;
    while (line < text.size()) {
        std::size_t begin = line + 1;
        line = find_of(text, "\n", begin);
        std::size_t content = find_not_of(text, " ", begin);
        bool blank = find_not_of(text, kSpace, begin) >= line;
        if (!blank && !known) indent = std::max(indent, content - begin);
        if (!blank && content - begin < indent) break;
        known = known || !blank;
        if (!blank || keeps) end = line > begin && text[line - 1] == '\r' ? line - 1 : line;
    }
    return end;
}

std::size_t null_word(std::string_view text, std::size_t at) {
    for (std::string_view word : {"null", "Null", "NULL", "~"}) {
        if (!text.substr(std::min(at, text.size())).starts_with(word)) continue;
        std::size_t end = at + word.size();
        bool ends = end == text.size() || kNameEnd.find(text[end]) != std::string_view::npos;
        // A colon makes it the next key: in "a:\nnull: 1" the value of a is empty.
        std::size_t next = skip_blanks(text, end);
        if (ends && (next == text.size() || text[next] != ':')) return word.size();
    }
    return 0;
}

std::optional<std::size_t> find_closing(std::string_view text, std::size_t at, char bracket) {
    while (true) {
        at = skip_space(text, at);
        if (at < text.size() && text[at] == bracket) return at;
        if (at == text.size() || text[at] != ',') return std::nullopt;
        ++at;
    }
}

}  // namespace saturate
