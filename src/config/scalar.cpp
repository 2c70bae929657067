// SPDX-License-Identifier: Apache-2.0
#include "config/scalar.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace saturate {

namespace {

// true, True and TRUE, but not tRUE.
bool is_cased(std::string_view text, std::initializer_list<std::string_view> words) {
    std::string low = lower(text);
    if (!is_one_of(low, words)) return false;
    auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
    auto capitals = std::ranges::count_if(text, is_capital);
    return capitals == 0 || capitals == static_cast<std::ptrdiff_t>(text.size()) ||
           (capitals == 1 && is_capital(text[0]));
}

std::string_view without_sign(std::string_view text) {
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
    return text;
}

bool all_of(std::string_view text, std::string_view allowed) {
    return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

constexpr std::string_view kDigits = "0123456789_", kOctal = "01234567_", kBinary = "01_",
                           kHex = "0123456789abcdefABCDEF_";

// The base and the digits of a whole number. Base 0: not a whole number.
struct Whole {
    int base = 0;
    std::string_view digits;
};

Whole whole_of(std::string_view text, Format format) {
    std::string_view rest = without_sign(text);
    if (rest.empty()) return {};
    auto prefixed = [&](char letter, std::string_view allowed) {
        return rest.size() > 2 && rest[0] == '0' && rest[1] == letter &&
               all_of(rest.substr(2), allowed);
    };
    if (format != Format::json) {
        if (prefixed('x', kHex)) return {16, rest.substr(2)};
        if (prefixed('b', kBinary)) return {2, rest.substr(2)};
        if (format == Format::toml && prefixed('o', kOctal)) return {8, rest.substr(2)};
        if (format == Format::yaml && rest.size() > 1 && rest[0] == '0')
            return all_of(rest, kOctal) ? Whole{8, rest.substr(1)} : Whole{};
    }
    if (rest[0] == '_' || !all_of(rest, format == Format::json ? kDigits.substr(0, 10) : kDigits))
        return {};
    return {10, rest};
}

// True for digits, a dot, an exponent. YAML 1.1 wants the dot, and a sign in the exponent.
bool is_fraction(std::string_view text, Format format) {
    std::string_view rest = without_sign(text);
    std::size_t exponent = rest.find_first_of("eE");
    std::string_view mantissa = rest.substr(0, exponent);
    std::size_t dot = mantissa.find('.');
    bool strict = format == Format::yaml;
    if (strict && dot == std::string_view::npos) return false;
    std::string_view before = mantissa.substr(0, dot);
    std::string_view after = dot == std::string_view::npos ? "" : mantissa.substr(dot + 1);
    if (before.empty() && (after.empty() || after[0] == '_')) return false;
    if (!before.empty() && (before[0] == '_' || !all_of(before, kDigits))) return false;
    if (!after.empty() && !all_of(after, kDigits)) return false;
    if (exponent == std::string_view::npos) return dot != std::string_view::npos;
    std::string_view power = rest.substr(exponent + 1);
    bool is_signed = !power.empty() && (power[0] == '-' || power[0] == '+');
    return (is_signed || !strict) && all_of(without_sign(power), kDigits.substr(0, 10));
}

bool is_endless(std::string_view text, Format format) {
    std::string_view rest = without_sign(text);
    if (format == Format::yaml)
        return is_one_of(rest, {".inf", ".Inf", ".INF"}) ||
               is_one_of(text, {".nan", ".NaN", ".NAN"});
    return format == Format::toml && is_one_of(rest, {"inf", "nan"});
}

// YAML 1.1 reads 1:30 as ninety.
bool is_sexagesimal(std::string_view text) {
    std::string_view rest = without_sign(text);
    std::size_t colon = rest.find(':');
    return colon != std::string_view::npos && colon > 0 && rest.size() > colon + 1 &&
           rest.find("::") == std::string_view::npos && rest.back() != ':' &&
           all_of(rest, "0123456789_:.");
}

}  // namespace

ScalarType scalar_type(std::string_view text, bool quoted, Format format) {
    if (quoted) return ScalarType::word;
    if (format == Format::yaml) {
        if (text.empty() || text == "~" || is_cased(text, {"null"})) return ScalarType::null;
        if (is_cased(text, {"true", "false", "yes", "no", "on", "off"})) return ScalarType::boolean;
        if (is_sexagesimal(text)) return ScalarType::whole;
    } else {
        if (format == Format::json && text == "null") return ScalarType::null;
        if (text == "true" || text == "false") return ScalarType::boolean;
    }
    if (whole_of(text, format).base != 0) return ScalarType::whole;
    if (is_fraction(text, format) || is_endless(text, format)) return ScalarType::number;
    return ScalarType::word;
}

std::optional<double> scalar_number(std::string_view text, Format format) {
    if (format == Format::yaml && is_sexagesimal(text)) return std::nullopt;
    double sign = text.starts_with('-') ? -1 : 1;
    if (Whole whole = whole_of(text, format); whole.base != 0) {
        double value = 0;
        for (char c : whole.digits) {
            if (c == '_') continue;
            int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
            value = value * whole.base + digit;
        }
        return sign * value;
    }
    std::string plain(text.starts_with('+') ? text.substr(1) : text);
    if (format != Format::json && is_fraction(text, format)) std::erase(plain, '_');
    std::optional<double> value = parse_number(plain);
    if (!value || !std::isfinite(*value)) return std::nullopt;
    // 08 is a word for PyYAML and eight for others: we do not decide.
    std::string_view rest = without_sign(text);
    if (format == Format::yaml && all_of(rest, kDigits)) return std::nullopt;
    return value;
}

}  // namespace saturate
