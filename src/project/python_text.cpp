// SPDX-License-Identifier: Apache-2.0
#include "project/python_text.h"

#include <algorithm>
#include <array>
#include <map>

namespace saturate {

namespace {

bool is_word(char c) {
    auto byte = static_cast<unsigned char>(c);
    return c == '_' || byte >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

bool is_string_prefix(std::string_view word) {
    return word.size() <= 2 && word.find_first_not_of("rRbBuUfFtT") == std::string_view::npos;
}

// Returns the place after the string that begins with a quote at `at`.
std::size_t string_end(std::string_view text, std::size_t at, std::size_t end) {
    char quote = text[at];
    bool is_triple = at + 2 < end && text[at + 1] == quote && text[at + 2] == quote;
    std::size_t i = at + (is_triple ? 3 : 1);
    while (i < end) {
        if (text[i] == '\\') {
            // An escaped newline in a file with \r\n is two bytes.
            i += i + 2 < end && text[i + 1] == '\r' && text[i + 2] == '\n' ? 3 : 2;
        } else if (is_triple) {
            if (text.substr(i, 3) == std::string(3, quote)) return std::min(i + 3, end);
            ++i;
        } else if (text[i] == quote) {
            return i + 1;
        } else if (text[i] == '\n') {
            return i;  // not closed: the interpreter refuses it too
        } else {
            ++i;
        }
    }
    return end;
}

std::size_t sign_end(std::string_view text, std::size_t at, std::size_t end) {
    static constexpr std::array<std::string_view, 14> kLong = {
        "**=", "//=", ">>=", "<<=", "==", "!=", "<=", ">=", ":=", "->", "**", "//", "<<", ">>"};
    for (std::string_view sign : kLong) {
        if (text.substr(at, sign.size()) == sign) return std::min(at + sign.size(), end);
    }
    // The '=' of +=, -= and the like does not belong to a keyword.
    if (at + 1 < end && text[at + 1] == '=' &&
        std::string_view("+-*/%@&|^").find(text[at]) != std::string_view::npos)
        return at + 2;
    return at + 1;
}

bool is_open(std::string_view sign) { return sign == "(" || sign == "[" || sign == "{"; }
bool is_close(std::string_view sign) { return sign == ")" || sign == "]" || sign == "}"; }

}  // namespace

std::vector<PythonToken> python_tokens(std::string_view text, ByteSpan part) {
    using enum PythonToken::Kind;
    std::vector<PythonToken> out;
    std::size_t end = std::min(part.end, text.size());
    std::size_t i = part.begin;
    while (i < end) {
        char c = text[i];
        std::size_t start = i;
        if (c == ' ' || c == '\t' || c == '\f' || c == '\r' || c == '\\') {
            // A newline after a backslash does not end the line.
            if (c == '\\' && i + 1 < end && text[i + 1] == '\r') ++i;
            i += c == '\\' ? 2 : 1;
            continue;
        }
        PythonToken::Kind kind = sign;
        if (c == '\n') {
            kind = newline;
            ++i;
        } else if (c == '#') {
            kind = comment;
            while (i < end && text[i] != '\n' && text[i] != '\r') ++i;
        } else if (c == '"' || c == '\'') {
            kind = string;
            i = string_end(text, i, end);
        } else if (is_word(c)) {
            kind = word;
            while (i < end && is_word(text[i])) ++i;
            if (i < end && (text[i] == '"' || text[i] == '\'') &&
                is_string_prefix(text.substr(start, i - start))) {
                kind = string;
                i = string_end(text, i, end);
            }
        } else {
            i = sign_end(text, i, end);
        }
        out.push_back({kind, {start, i}});
    }
    return out;
}

const CallArgument* CallText::find(std::string_view keyword) const {
    for (const CallArgument& argument : arguments)
        if (argument.name == keyword) return &argument;
    return nullptr;
}

std::optional<CallText> read_call(std::string_view text, ByteSpan call) {
    using enum PythonToken::Kind;
    if (call.end > text.size() || call.begin >= call.end || text[call.end - 1] != ')')
        return std::nullopt;
    std::vector<PythonToken> tokens = python_tokens(text, call);
    auto of = [&](const PythonToken& token) {
        return text.substr(token.span.begin, token.span.end - token.span.begin);
    };
    if (tokens.empty() || of(tokens.back()) != ")") return std::nullopt;
    // Finds the parenthesis that the last one closes.
    std::size_t open = tokens.size();
    int depth = 0;
    for (std::size_t i = tokens.size(); i-- > 0;) {
        if (tokens[i].kind != sign) continue;
        if (is_close(of(tokens[i]))) ++depth;
        if (is_open(of(tokens[i])) && --depth == 0) {
            open = i;
            break;
        }
    }
    if (open == tokens.size() || open == 0) return std::nullopt;

    CallText out{.inside = {tokens[open].span.end, call.end - 1}};
    std::vector<PythonToken> own;  // tokens of the current argument
    bool in_lambda = false, has_for = false;
    auto close_argument = [&] {
        if (own.empty()) return;
        CallArgument argument{.is_generator = has_for,
                              .whole = {own.front().span.begin, own.back().span.end}};
        has_for = false;
        std::size_t first = 0;
        if (own.front().kind == sign && own.front().span.begin < own.front().span.end) {
            std::string_view stars = of(own.front());
            if (stars == "*" || stars == "**") argument.stars = static_cast<int>(stars.size());
            first = argument.stars > 0 ? 1 : 0;
        } else if (own.size() > 2 && own[0].kind == word && of(own[1]) == "=") {
            argument.name = of(own[0]);
            first = 2;
        }
        if (first < own.size()) argument.value = {own[first].span.begin, own.back().span.end};
        out.arguments.push_back(std::move(argument));
        own.clear();
    };
    depth = 0;
    for (std::size_t i = open + 1; i + 1 < tokens.size(); ++i) {
        const PythonToken& token = tokens[i];
        if (token.kind == newline || token.kind == comment) continue;
        std::string_view word_text = of(token);
        if (token.kind == sign && is_open(word_text)) ++depth;
        if (token.kind == sign && is_close(word_text)) --depth;
        if (depth == 0 && token.kind == word && word_text == "lambda") in_lambda = true;
        if (depth == 0 && token.kind == word && word_text == "for") has_for = true;
        if (depth == 0 && token.kind == sign && word_text == ":") in_lambda = false;
        if (depth == 0 && token.kind == sign && word_text == "," && !in_lambda) {
            close_argument();
            out.trailing_comma = token.span.begin;
            continue;
        }
        own.push_back(token);
        out.trailing_comma.reset();
    }
    close_argument();
    return out;
}

std::size_t line_begin(std::string_view text, std::size_t at) {
    while (at > 0 && text[at - 1] != '\n') --at;
    return at;
}

std::size_t line_end(std::string_view text, std::size_t at) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    return end > at && end < text.size() && text[end - 1] == '\r' ? end - 1 : end;
}

std::string_view newline_at(std::string_view text, std::size_t at) {
    std::size_t end = text.find('\n', at);
    // The last line may have no newline: use the style of the line before.
    if (end == std::string_view::npos) end = text.rfind('\n');
    return end != std::string_view::npos && end > 0 && text[end - 1] == '\r' ? "\r\n" : "\n";
}

std::optional<std::string> indentation(std::string_view text, std::size_t at) {
    std::size_t begin = line_begin(text, at);
    std::string_view before = text.substr(begin, at - begin);
    if (begin == 0 && before.starts_with("\xEF\xBB\xBF")) before.remove_prefix(3);
    if (before.find_first_not_of(" \t\f") != std::string_view::npos) return std::nullopt;
    return std::string(before);
}

std::string indent_unit(std::string_view text, std::string_view beside) {
    if (beside.starts_with('\t')) return "\t";
    std::map<std::string, int> seen;
    std::string above;
    bool opens = false;  // the line above ends in a colon
    std::size_t limit = std::min<std::size_t>(text.size(), 1 << 16);
    for (std::size_t at = 0; at < limit; at = std::min(text.find('\n', at), text.size()) + 1) {
        std::string_view line = text.substr(at, line_end(text, at) - at);
        std::size_t first = line.find_first_not_of(" \t");
        if (first == std::string_view::npos || line[first] == '#') continue;
        std::string margin(line.substr(0, first));
        if (opens && margin.size() > above.size() && margin.starts_with(above))
            ++seen[margin.substr(above.size())];
        opens = line.ends_with(':');
        above = margin;
    }
    std::string unit = "    ";
    int most = 0;
    for (const auto& [margin, count] : seen) {
        bool fits = beside.empty() || margin.find('\t') == std::string::npos;
        if (count > most && fits) {
            most = count;
            unit = margin;
        }
    }
    return unit;
}

}  // namespace saturate
