// SPDX-License-Identifier: Apache-2.0
// Keeps the type that the program reads: a boolean stays a boolean, a number keeps its dot.
#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "remedies/advisor.h"

namespace saturate {

namespace {

// Writes booleans in the style of the file: yes for no, True for False.
std::string boolean_like(const std::string& was, bool wanted, Format format) {
    if (format != Format::yaml) return wanted ? "true" : "false";
    std::string word = lower(was);
    std::string text = word == "yes" || word == "no"   ? (wanted ? "yes" : "no")
                       : word == "on" || word == "off" ? (wanted ? "on" : "off")
                                                       : (wanted ? "true" : "false");
    bool first = was[0] >= 'A' && was[0] <= 'Z';
    bool second = was.size() > 1 && was[1] >= 'A' && was[1] <= 'Z';
    if (first && second) return upper(text);
    if (first) text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
}

// Returns 6.0e-4: YAML 1.1 wants a dot and a signed exponent in a number.
std::string exponential(double value) {
    std::string text = fmt::format("{:.2e}", value);  // 6.00e-04
    std::size_t exponent = text.find('e');
    std::string digits = text.substr(0, exponent);
    while (digits.back() == '0' && digits[digits.size() - 2] != '.') digits.pop_back();
    std::size_t power = exponent + (text[exponent + 1] == '+' ? 2 : 1);
    return fmt::format("{}e{:+d}", digits, *parse_integer(text.substr(power)));
}

std::string number_like(const std::string& was, double value) {
    if (was.find_first_of("eE") == std::string::npos) {
        std::string text = fmt::format("{:.3g}", value);
        if (text.find('e') == std::string::npos)
            return text.find('.') == std::string::npos ? text + ".0" : text;
    }
    return exponential(value);
}

// Returns 2e-3 in the style of 1e-3, which PyYAML reads as a string and the program converts.
std::string dotless(double value) {
    std::string text = exponential(value);
    std::size_t exponent = text.find('e'), dot = text.find('.');
    std::string digits = text.substr(0, dot);
    std::string rest = text.substr(dot + 1, exponent - dot - 1);
    if (rest == "0") rest.clear();
    auto power = *parse_integer(text[exponent + 1] == '+' ? text.substr(exponent + 2)
                                                          : text.substr(exponent + 1));
    return fmt::format("{}{}e{}", digits, rest, power - static_cast<std::int64_t>(rest.size()));
}

}  // namespace

std::optional<std::string> in_type_of(const Value& value, const std::string& wanted,
                                      Format format) {
    std::optional<double> number = parse_number(wanted);
    bool is_flag = wanted == "true" || wanted == "false";
    switch (value.type) {
        case ScalarType::boolean:
            if (!is_flag) return std::nullopt;
            return boolean_like(value.text, wanted == "true", format);
        case ScalarType::whole:
            // The file has 0 or 1 as a switch.
            if (is_flag && (value.text == "0" || value.text == "1"))
                return wanted == "true" ? "1" : "0";
            if (!number || *number != std::floor(*number)) return std::nullopt;
            return fmt::format("{:.0f}", *number);
        case ScalarType::number:
            if (!number) return std::nullopt;
            return number_like(value.text, *number);
        case ScalarType::word:
            break;
        case ScalarType::null:
            return std::nullopt;
    }
    std::string text = wanted;
    bool was_number = parse_number(value.text).has_value();
    if (was_number != number.has_value()) return std::nullopt;
    if (number && !value.quoted) text = dotless(*number);
    if (value.quoted || format != Format::yaml) return fmt::format("\"{}\"", text);
    // Quotes a text that would not be read as a word.
    bool is_word = scalar_type(text, false, format) == ScalarType::word;
    return is_word ? text : fmt::format("\"{}\"", text);
}

}  // namespace saturate
