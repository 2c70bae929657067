// SPDX-License-Identifier: Apache-2.0
// Writes new values and keys in each format, and reads them back.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "config/edit_plan.h"

namespace saturate {

namespace {

bool is_number(std::string_view value) {
    std::string_view digits = value.starts_with('+') ? value.substr(1) : value;
    return digits.find_first_of("0123456789") != std::string_view::npos &&
           parse_number(digits).has_value();
}

// True if every reader takes it for something other than a word: quotes would change its meaning.
bool is_literal(std::string_view value, Format format) {
    if (is_number(value) || value == "true" || value == "false") return true;
    std::string word = lower(value);
    switch (format) {
        case Format::json:
            return value == "null";
        case Format::toml:
            return is_one_of(value, {"inf", "-inf", "+inf", "nan", "-nan", "+nan"});
        case Format::yaml:
            return is_one_of(word, {"true", "false", "yes", "no", "on", "off", "null", "~", ".inf",
                                    "-.inf", "+.inf", ".nan"});
    }
    return false;
}

std::string json_quotes(std::string_view word) {
    std::string out;
    append_json_string(out, word);
    return out;
}

std::string single_quotes(std::string_view word) {
    std::string out = "'";
    for (char c : word) out += c == '\'' ? "''" : std::string(1, c);
    return out + "'";
}

bool is_plain_safe(std::string_view word, bool flow) {
    constexpr std::string_view kIndicators = "-?:,[]{}#&*!|>'\"%@`=<. \t";
    if (word.empty() || kIndicators.find(word.front()) != std::string_view::npos) return false;
    if (word.back() == ':' || word.back() == ' ' || word.back() == '\t') return false;
    if (word.find(": ") != std::string_view::npos || word.find(" #") != std::string_view::npos ||
        word.find('\t') != std::string_view::npos)
        return false;
    return !flow || word.find_first_of(",[]{}?:") == std::string_view::npos;
}

std::string write(std::string_view value, Format format, bool flow, char old_quote) {
    bool is_raw = value.front() == '"' || value.front() == '[' || value.front() == '{' ||
                  (value.front() == '\'' && format != Format::json);
    if (is_raw || is_literal(value, format)) return std::string(value);
    bool has_quote = value.find('\'') != std::string_view::npos;
    if (format == Format::toml && old_quote == '\'' && !has_quote)
        return fmt::format("'{}'", value);
    if (format != Format::yaml || old_quote == '"') return json_quotes(value);
    if (old_quote == '\'') return single_quotes(value);
    return is_plain_safe(value, flow) ? std::string(value) : json_quotes(value);
}

// Reads the value from a small file of the same format.
std::optional<Node> read_back(const std::string& raw, Format format, bool flow) {
    bool braces = format == Format::json || (format == Format::yaml && flow);
    std::string before = format == Format::json   ? "{\"k\": "
                         : format == Format::toml ? "k = "
                         : braces                 ? "{k: "
                                                  : "k: ";
    std::string file = format == Format::json   ? "value.json"
                       : format == Format::toml ? "value.toml"
                                                : "value.yaml";
    try {
        Document small = Document::parse(before + raw + (braces ? "}\n" : "\n"), file);
        const Node* node = small.root().find("k");
        bool is_whole = node != nullptr && small.root().members.size() == 1 && node->placed &&
                        node->begin == before.size() && node->end == before.size() + raw.size();
        if (is_whole) return *node;
    } catch (const UserError&) {
        return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace

NewValue render_value(const Document& document, const EditTarget& target) {
    const std::string& wanted = target.edit->value;
    std::string_view value = trim(wanted);
    bool flow = target.map->flow;
    const Node* old = target.member != nullptr ? &target.member->value : nullptr;
    char first = old != nullptr && old->begin < old->end ? document.text()[old->begin] : '\0';
    if (!value.empty() && value.find_first_of("\r\n") == std::string_view::npos) {
        std::string raw = write(value, document.format(), flow, first);
        if (std::optional<Node> node = read_back(raw, document.format(), flow))
            return {std::move(raw), *std::move(node)};
    }
    refuse(target,
           fmt::format("{} cannot become {}", path_text(target.edit->path), in_quotes(wanted)),
           "one value on one line", "");
}

std::string render_key(const std::string& key, Format format, bool flow) {
    bool is_bare = !key.empty() && std::ranges::all_of(key, [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    });
    if (format == Format::json) return json_quotes(key);
    if (format == Format::toml) return is_bare ? key : json_quotes(key);
    bool is_plain = is_plain_safe(key, flow) && !is_literal(key, Format::yaml);
    return is_plain ? key : json_quotes(key);
}

}  // namespace saturate
